// JetStream streams and KV buckets as data, and the one function that makes them so.
import { isDeepStrictEqual } from 'node:util';
import type { JetStreamClient, JetStreamManager, StreamConfig } from '@nats-io/jetstream';
import {
  DiscardPolicy,
  JetStreamApiError,
  RetentionPolicy,
  StorageType,
  StoreCompression,
  jetstream,
  jetstreamManager,
} from '@nats-io/jetstream';
import { type KV, Kvm } from '@nats-io/kv';
import { errors, type NatsConnection } from '@nats-io/transport-node';
import { isLostWrite, waitAfterLostWrite } from './nats/conflict.ts';

const GIB = 1024 ** 3;
const HOUR_NANOS = 3_600_000_000_000;

export const INGEST_STREAM = 'INGEST';
export const EVENTS_STREAM = 'EVENTS';
export const DEAD_LETTERS_STREAM = 'DEAD_LETTERS';
export const AUDIT_STREAM = 'AUDIT';
export const MAIL_STREAM = 'MAIL';
export const WEBHOOKS_STREAM = 'WEBHOOKS';
export const JUDGING_STREAM = 'JUDGING';
export const SCORES_STREAM = 'SCORES';

/** Subject of a partition of the ingest log. */
export const ingestSubject = (partition: number): string => `ingest.${partition}`;
/**
 * Subject of messages that carry events of several partitions. Every message costs a sync of the disk, so what is too
 * little for a message of its own travels together; each reader takes its own partitions' events out of it.
 */
export const MIXED_SUBJECT = 'ingest.mixed';
/** Subject of the platform events that one worker publishes. */
export const EVENTS_SUBJECT = 'events.batch';
/** Subject of the intents and outcomes of mutations, on their way to the audit log. */
export const AUDIT_SUBJECT = 'audit.entry';
/** Largest of them: 16 KiB of changes, and ids. Whoever reads them holds no more than that for each. */
const AUDIT_BYTES_MAX = 64 * 1024;
/** Largest mail: as ops/mail_queue.ts takes it, in the longest UTF-8. Whoever reads them holds no more than that for each. */
export const MAIL_BYTES_MAX = 256 * 1024;
/** Subject of mails on their way out. */
export const MAIL_SUBJECT = 'mail.send';
/** Subject of the deliveries of one receiver: each has its own, so that what waits for one can be counted and taken away. */
export const webhookSubject = (org: string, target: string): string => `webhooks.${org}.${target}`;
/** Subject of slow judging of one kind. */
export const judgingSubject = (kind: 'live' | 'eval' | 'dataset'): string => `judging.${kind}`;
/** Subject of scores that people give. */
export const SCORES_SUBJECT = 'scores.given';
/** Largest of them: a comment of 10,000 characters in the longest UTF-8, and ids. */
const SCORE_BYTES_MAX = 64 * 1024;
/** Subject of a dead letter. */
export const deadLetterSubject = (stage: string): string => `dead.${stage}`;

/** A judging task names at most a few hundred traces of 128 characters. */
export const JUDGING_MESSAGE_BYTES_MAX = 128 * 1024;
/** A platform event is a few hundred bytes; beyond this it is none of ours. */
export const WEBHOOK_MESSAGE_BYTES_MAX = 256 * 1024;
/** Largest message that the streams take: a 5 MiB event with its envelope fits; nats-server's max_payload is the same. */
export const MESSAGE_BYTES_MAX = 8 * 1024 * 1024;

export const BUCKETS = {
  /** Cluster facts that never change after the first start: partitions. */
  service: { ttlHours: 0, history: 1 },
  orgs: { ttlHours: 0, history: 1 },
  /** By SHA-256 of the raw key. */
  api_keys: { ttlHours: 0, history: 1 },
  /** Owner, epoch and checkpoint of each partition. */
  partitions: { ttlHours: 0, history: 1 },
  /** Locks and answers of requests with an Idempotency-Key, but ingest. */
  idempotency: { ttlHours: 24, history: 1, bytesMax: GIB, whenFull: 'refuse' },
  /** Outcomes of ingest requests with an Idempotency-Key, some 250 bytes each; a forgotten one's events are still recognised. */
  ingest_keys: { ttlHours: 24, history: 1, bytesMax: GIB / 4, whenFull: 'forget' },
  /** Those of them that run now: longer than any of them takes, short enough that a process that died blocks no key for long. */
  ingest_claims: { ttlHours: 5 / 3600, history: 1, bytesMax: GIB / 64, whenFull: 'forget', inMemory: true },
  agents: { ttlHours: 0, history: 1 },
  /** By SHA-256 of the raw token; kept a while longer than a token lasts, so that an old one is told from a made-up one. */
  register_tokens: { ttlHours: 48, history: 1 },
  /** What members were granted on single things. */
  grants: { ttlHours: 0, history: 1 },
  /** An org's own settings of how its telemetry is treated. */
  policies: { ttlHours: 0, history: 1 },
  /** Each org's own prices of models. */
  prices: { ttlHours: 0, history: 1 },
  /** The repricing that is being carried out. */
  repricings: { ttlHours: 0, history: 1 },
  /** From when on each org's costs are out of the ordinary. */
  cost_configs: { ttlHours: 0, history: 1 },
  /** Limits and alerts of each org. */
  budgets: { ttlHours: 0, history: 1 },
  /** What has come of each org's budget in its period. */
  budget_states: { ttlHours: 0, history: 1 },
  /** Webhook endpoints, by org and id. */
  webhooks: { ttlHours: 0, history: 1 },
  /** Events that were given up, by org, receiver and event; the oldest make room. */
  webhook_dead_letters: { ttlHours: 720, history: 1, bytesMax: GIB, whenFull: 'forget' },
  /** Incidents that are open, or over and not told yet, by org and cluster. */
  incidents: { ttlHours: 0, history: 1 },
  /** Newest version of each judge, by org and id. */
  judges: { ttlHours: 0, history: 1 },
  /** Older versions of judges, by org, id and version; read one by one. */
  judge_versions: { ttlHours: 0, history: 1 },
  /** When each LLM judge last judged a live trace of each agent. */
  judging_marks: { ttlHours: 720, history: 1 },
  /** Calls of LLM judges of each org in its period. */
  judge_quotas: { ttlHours: 0, history: 1 },
  /** What upstreams answered judges, until it is recorded for good: a task that comes again does not call again. The oldest make room. */
  judging_answers: { ttlHours: 24, history: 1, bytesMax: GIB / 4, whenFull: 'forget' },
  /** Evals and dataset runs: what was asked, how far it is, what came of it. */
  evals: { ttlHours: 0, history: 1 },
  /** The traces of an eval, by eval and chunk. */
  eval_chunks: { ttlHours: 720, history: 1 },
  /** Name, version and size of each dataset, by org and id. */
  datasets: { ttlHours: 0, history: 1 },
  /** The items of a dataset, by org, id and part; read one by one. */
  dataset_items: { ttlHours: 0, history: 1 },
  /** Prompt templates, by org, name and version. */
  prompts: { ttlHours: 0, history: 1 },
  /** What each org has redacted before it is stored. */
  pii_policies: { ttlHours: 0, history: 1 },
  /** How long each org's data is kept, and from when on. */
  retention_policies: { ttlHours: 0, history: 1 },
  /** Long work that was asked for (restore, erase) and how far it is, by org and id. */
  job_records: { ttlHours: 2160, history: 1 },
  /** Values whose data is to be erased, sealed, until that is done; nobody waits longer for it. */
  erase_asks: { ttlHours: 168, history: 1 },
  /** Analysts of orgs, by user; of each password only a hash. */
  analysts: { ttlHours: 0, history: 1 },
  /** Who runs the scheduled jobs, and when each ran last. */
  jobs: { ttlHours: 0, history: 1 },
} as const satisfies Record<string, BucketSpec>;
export type BucketName = keyof typeof BUCKETS;

interface BucketSpec {
  /** 0: kept for good. */
  ttlHours: number;
  history: number;
  /** Bound on its bytes, and what happens there: writes are refused, or the oldest keys forgotten. */
  bytesMax?: number;
  whenFull?: 'refuse' | 'forget';
  /** Gone when nats-server ends; no write waits for the disk. */
  inMemory?: boolean;
}

export interface StreamLimits {
  replicas: number;
  /** Bytes that the ingest log may hold before ingest answers 429. */
  logBytesMax: number;
}

function streamConfigs(limits: StreamLimits): (Partial<StreamConfig> & { name: string })[] {
  // A replica writes its blocks behind the log of the cluster: after kill -9 nats-server 2.15 met a half-written compressed one ("s2: corrupt
  // input"), the replica took nothing more until its server started again, and consumers that were led there stood still.
  const compression = limits.replicas > 1 ? StoreCompression.None : StoreCompression.S2;
  const common = {
    storage: StorageType.File,
    num_replicas: limits.replicas,
    retention: RetentionPolicy.Limits,
    max_msg_size: MESSAGE_BYTES_MAX,
  };
  return [
    // Discard new: a full log refuses (429) instead of forgetting what it acknowledged. Consumed messages are purged by
    // the janitor of the pipeline, so the log is full only when landing is behind.
    {
      ...common,
      name: INGEST_STREAM,
      subjects: ['ingest.*'],
      max_bytes: limits.logBytesMax,
      discard: DiscardPolicy.New,
      compression,
      duplicate_window: 120_000_000_000,
    },
    {
      ...common,
      // Nobody holds up whoever publishes here: readers that are 2 GiB (some 8 million events) or a week behind lose the oldest.
      name: EVENTS_STREAM,
      subjects: ['events.*'],
      max_bytes: 2 * GIB,
      max_age: 168 * HOUR_NANOS,
      discard: DiscardPolicy.Old,
      compression,
      duplicate_window: 120_000_000_000,
    },
    {
      ...common,
      name: DEAD_LETTERS_STREAM,
      subjects: ['dead.*'],
      max_bytes: GIB,
      discard: DiscardPolicy.New,
      duplicate_window: 120_000_000_000,
    },
    // Work queues: a message leaves when its work is done. Full, they refuse: what they would have to remember is not done either.
    {
      ...common,
      name: AUDIT_STREAM,
      subjects: [AUDIT_SUBJECT],
      retention: RetentionPolicy.Workqueue,
      max_msg_size: AUDIT_BYTES_MAX,
      max_bytes: GIB,
      discard: DiscardPolicy.New,
      compression,
      duplicate_window: 120_000_000_000,
    },
    {
      ...common,
      name: MAIL_STREAM,
      subjects: [MAIL_SUBJECT],
      retention: RetentionPolicy.Workqueue,
      max_msg_size: MAIL_BYTES_MAX,
      max_bytes: GIB / 4,
      discard: DiscardPolicy.New,
      duplicate_window: 120_000_000_000,
    },
    {
      ...common,
      name: SCORES_STREAM,
      subjects: [SCORES_SUBJECT],
      retention: RetentionPolicy.Workqueue,
      max_msg_size: SCORE_BYTES_MAX,
      max_bytes: GIB / 4,
      discard: DiscardPolicy.New,
      compression,
      duplicate_window: 120_000_000_000,
    },
    // What waits for each receiver, each org and in all is bounded by those who write here (pipeline/delivery): what is
    // beyond is given up to the dead letters. The bounds here are above those, so that a next try always finds room.
    {
      ...common,
      name: WEBHOOKS_STREAM,
      subjects: ['webhooks.*.*'],
      retention: RetentionPolicy.Workqueue,
      max_bytes: GIB,
      max_msg_size: WEBHOOK_MESSAGE_BYTES_MAX,
      discard: DiscardPolicy.New,
      compression,
      duplicate_window: 120_000_000_000,
    },
    // Slow work of judges. Full, the oldest live tasks make room: a judgement that comes hours late is worth less than one that is due.
    // Evals send their next chunk when one is done, so they hold a few messages each.
    {
      ...common,
      name: JUDGING_STREAM,
      subjects: ['judging.*'],
      retention: RetentionPolicy.Workqueue,
      max_bytes: GIB / 2,
      max_msg_size: JUDGING_MESSAGE_BYTES_MAX,
      discard: DiscardPolicy.Old,
      compression,
      duplicate_window: 120_000_000_000,
    },
  ];
}

/** Handles on JetStream that a process needs. */
export interface Log {
  nc: NatsConnection;
  js: JetStreamClient;
  jsm: JetStreamManager;
  bucket(name: BucketName): Promise<KV>;
}

/** How long a cluster may take until it has a leader and all of its nodes, and another process until it has made what this one needs too. */
const OPEN_MS_MAX = 60_000;
const OPEN_RETRY_MS = 250;

/**
 * Makes or updates every stream and bucket, and checks that the server kept what was asked (servers before 2.10 drop
 * unknown fields without a word). Waits up to OPEN_MS_MAX for a cluster that is not ready to make them.
 * @throws Error naming the stream and the field that the server did not keep, or what did not become ready.
 */
export async function openLog(nc: NatsConnection, limits: StreamLimits): Promise<Log> {
  if (nc.info?.jetstream !== true) throw new Error(`NATS at ${nc.getServer()} runs without JetStream (start it with -js)`);
  const deadline = performance.now() + OPEN_MS_MAX;
  const jsm = await untilReady('JetStream', deadline, () => jetstreamManager(nc));
  for (const config of streamConfigs(limits)) await untilReady(config.name, deadline, () => makeStream(jsm, config));
  const kvm = new Kvm(nc);
  const opened = new Map<BucketName, Promise<KV>>();
  const open = (name: BucketName): Promise<KV> => openBucket(name, BUCKETS[name], { kvm, jsm, replicas: limits.replicas });
  const bucket = (name: BucketName): Promise<KV> => {
    let kv = opened.get(name);
    if (kv === undefined) {
      kv = untilReady(name, deadline, () => open(name));
      opened.set(name, kv);
    }
    return kv;
  };
  await Promise.all((Object.keys(BUCKETS) as BucketName[]).map(bucket));
  void remakeInMemory(nc, open);
  return { nc, js: jetstream(nc), jsm, bucket };
}

const STREAM_NOT_FOUND = 10059;
/** JetStream's error codes of a cluster that is not ready: no leader, too few nodes, a stream that another process is making just now. */
const NOT_READY = new Set([10004, 10005, 10008, 10009, 10058, STREAM_NOT_FOUND, 10118]);

function isNotReady(error: unknown): boolean {
  if (error instanceof JetStreamApiError) return NOT_READY.has(error.code);
  // Nobody answers, as there is no leader yet; an account without JetStream has an answer of the server as its cause.
  if (error instanceof Error && error.name === 'JetStreamNotEnabled') return !(error.cause instanceof JetStreamApiError);
  return error instanceof errors.TimeoutError || error instanceof errors.RequestError;
}

/** @throws what the last try threw, with the name of what was tried */
async function untilReady<T>(what: string, deadline: number, attempt: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await attempt();
    } catch (cause) {
      if (!isNotReady(cause)) throw cause;
      const why = cause instanceof Error ? cause.message : String(cause);
      if (performance.now() > deadline)
        throw new Error(`NATS did not make ${what} ready within ${OPEN_MS_MAX / 1000} s: ${why}`, { cause });
      await new Promise((resolve) => setTimeout(resolve, OPEN_RETRY_MS));
    }
  }
}

/** An update is a decision of the whole cluster: it is asked for only where something differs. */
async function makeStream(jsm: JetStreamManager, config: Partial<StreamConfig> & { name: string }): Promise<void> {
  const existing = await jsm.streams.info(config.name).catch((error: unknown) => {
    if (error instanceof JetStreamApiError && error.code === STREAM_NOT_FOUND) return null;
    throw error;
  });
  const kept = existing?.config ?? null;
  const differs =
    kept === null || Object.entries(config).some(([field, value]) => !isDeepStrictEqual(kept[field as keyof StreamConfig], value));
  if (!differs) return;
  const { name, ...update } = config;
  const info = kept === null ? await jsm.streams.add(config) : await jsm.streams.update(name, update);
  for (const field of ['max_bytes', 'discard', 'compression'] as const) {
    if (config[field] !== undefined && info.config[field] !== config[field])
      throw new Error(
        `nats-server kept ${name}.${field} = ${String(info.config[field])}, not ${String(config[field])}; it needs to be 2.10 or newer`,
      );
  }
}

const REMAKE_RETRY_MS = 100;

/** A nats-server that starts again has forgotten its streams in memory altogether: they are made anew whenever the connection is back. */
async function remakeInMemory(nc: NatsConnection, make: (name: BucketName) => Promise<KV>): Promise<void> {
  const names = (Object.keys(BUCKETS) as BucketName[]).filter((name) => 'inMemory' in BUCKETS[name]);
  for await (const status of nc.status()) {
    if (status.type !== 'reconnect') continue;
    // JetStream comes up a little later than the connection; a connection that is lost again is begun with anew.
    for (let made = false; !made && !nc.isClosed();) {
      made = await Promise.all(names.map(make)).then(
        () => true,
        () => false,
      );
      if (!made) await new Promise((resolve) => setTimeout(resolve, REMAKE_RETRY_MS));
    }
  }
}

/** Makes a bucket, or brings the bounds of one that exists to what they are now. */
async function openBucket(
  name: string,
  { ttlHours, history, bytesMax, whenFull, inMemory }: BucketSpec,
  { kvm, jsm, replicas }: { kvm: Kvm; jsm: JetStreamManager; replicas: number },
): Promise<KV> {
  const kv = await kvm.create(name, {
    history,
    replicas,
    storage: inMemory === true ? StorageType.Memory : StorageType.File,
    // Direct reads are answered by any replica, also by one that is behind: whoever lost a write must read what won.
    allow_direct: replicas === 1,
    ...(ttlHours > 0 ? { ttl: ttlHours * 3_600_000 } : {}),
    ...(bytesMax === undefined ? {} : { max_bytes: bytesMax }),
  });
  const stream = `KV_${name}`;
  const bounds = {
    num_replicas: replicas,
    ...(bytesMax === undefined ? {} : { max_bytes: bytesMax, discard: whenFull === 'forget' ? DiscardPolicy.Old : DiscardPolicy.New }),
  };
  const { config } = await jsm.streams.info(stream);
  const differs = Object.entries(bounds).some(([field, value]) => config[field as keyof typeof bounds] !== value);
  if (differs) await jsm.streams.update(stream, bounds);
  return kv;
}

/** How often is looked for what was decided, once it is known that it was: some seconds in all. */
const SETTLE_TRIES_MAX = 100;

/**
 * Writes a fact of the cluster once and for all: whoever comes first decides, the others take what was decided.
 * @returns the value that holds
 */
export async function settle<T>(log: Log, key: string, propose: () => Promise<T>): Promise<T> {
  const kv = await log.bucket('service');
  const existing = await kv.get(key);
  if (existing?.operation === 'PUT') return existing.json<T>();
  const proposal = await propose();
  try {
    await kv.create(key, JSON.stringify(proposal));
    return proposal;
  } catch (error) {
    for (let tries = 1; ; tries++) {
      const decided = await kv.get(key);
      if (decided?.operation === 'PUT') return decided.json<T>();
      if (!isLostWrite(error) || tries >= SETTLE_TRIES_MAX) throw error;
      await waitAfterLostWrite(tries);
    }
  }
}

/** The number of partitions of the ingest log: fixed by the first process that asks, for as long as the log exists. */
export async function fixedPartitions(log: Log, wanted: number): Promise<number> {
  return (await settle(log, 'config', () => Promise.resolve({ partitions: wanted }))).partitions;
}
