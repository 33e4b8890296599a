// JetStream streams, their subjects and KV buckets as data: what there is, and its bounds. ops/platform/nats/open_log.ts makes them so.
import type { StreamConfig } from '@nats-io/jetstream';
import { DiscardPolicy, RetentionPolicy, StorageType, StoreCompression } from '@nats-io/jetstream';

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
/** Largest mail: as ops/exchange/mail_queue.ts takes it, in the longest UTF-8. Whoever reads them holds no more than that for each. */
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
  /** Deletions of orgs: those that run, and the newest of each org id that was deleted. */
  org_deletions: { ttlHours: 0, history: 1 },
  /** By SHA-256 of the raw key. The marks of deletions are kept for good, too: they tell that the first key was revoked. */
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
  /** By org and SHA-256 of the raw token; kept a while longer than a token lasts, so that an old one is told from a made-up one. */
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
  /** What upstreams answered judges, by org and call, until it is recorded for good: a task that comes again does not call again. The oldest make room. */
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

export interface BucketSpec {
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

type StreamSpec = Partial<StreamConfig> & { name: string };

/** Window within which a stream stores a message id once. */
const DUPLICATE_WINDOW_NANOS = 120_000_000_000;

/** A work queue: a message is deleted when it is acknowledged, and a full queue rejects. Rejected work counts as not done. */
const WORK_QUEUE = { retention: RetentionPolicy.Workqueue, discard: DiscardPolicy.New } as const;

/** Streams whose bounds no setting changes. Blocks are compressed unless `compression` says otherwise. */
const STREAMS: readonly StreamSpec[] = [
  {
    // Old messages are deleted so that a reader never delays the publishers: one that is 2 GiB (some 8 million events) or a
    // week behind loses the oldest.
    name: EVENTS_STREAM,
    subjects: ['events.*'],
    max_bytes: 2 * GIB,
    max_age: 168 * HOUR_NANOS,
    discard: DiscardPolicy.Old,
  },
  {
    name: DEAD_LETTERS_STREAM,
    subjects: ['dead.*'],
    max_bytes: GIB,
    discard: DiscardPolicy.New,
    compression: StoreCompression.None,
  },
  { ...WORK_QUEUE, name: AUDIT_STREAM, subjects: [AUDIT_SUBJECT], max_bytes: GIB, max_msg_size: AUDIT_BYTES_MAX },
  {
    ...WORK_QUEUE,
    name: MAIL_STREAM,
    subjects: [MAIL_SUBJECT],
    max_bytes: GIB / 4,
    max_msg_size: MAIL_BYTES_MAX,
    compression: StoreCompression.None,
  },
  { ...WORK_QUEUE, name: SCORES_STREAM, subjects: [SCORES_SUBJECT], max_bytes: GIB / 4, max_msg_size: SCORE_BYTES_MAX },
  {
    // The publishers in pipeline/delivery bound what waits for a receiver, for an organization and in all, and dead-letter the
    // rest. Their bounds are below this one, so that the next attempt of a delivery always has room.
    ...WORK_QUEUE,
    name: WEBHOOKS_STREAM,
    subjects: ['webhooks.*.*'],
    max_bytes: GIB,
    max_msg_size: WEBHOOK_MESSAGE_BYTES_MAX,
  },
  {
    // A full queue deletes its oldest live tasks: a judgement that is hours late is worth less than one that is due now. Evals
    // enqueue their next chunk when one is done, so they hold a few messages each.
    ...WORK_QUEUE,
    name: JUDGING_STREAM,
    subjects: ['judging.*'],
    max_bytes: GIB / 2,
    max_msg_size: JUDGING_MESSAGE_BYTES_MAX,
    discard: DiscardPolicy.Old,
  },
];

/** Returns the configuration of every stream. */
export function streamConfigs({ replicas, logBytesMax }: StreamLimits): StreamSpec[] {
  // A full ingest log rejects (429) so that it never loses an acknowledged event. The janitor of the pipeline purges consumed
  // messages, so the log is full only when landing is behind.
  const ingest = {
    name: INGEST_STREAM,
    subjects: ['ingest.*'],
    max_bytes: logBytesMax,
    discard: DiscardPolicy.New,
  };
  const common = {
    storage: StorageType.File,
    num_replicas: replicas,
    retention: RetentionPolicy.Limits,
    max_msg_size: MESSAGE_BYTES_MAX,
    duplicate_window: DUPLICATE_WINDOW_NANOS,
    // A replica writes its blocks after the log of the cluster. After a kill -9, nats-server 2.15 met a half-written compressed
    // block ("s2: corrupt input"): the replica accepted nothing until its server restarted, and its consumers stood still.
    compression: replicas > 1 ? StoreCompression.None : StoreCompression.S2,
  };
  return [ingest, ...STREAMS].map((stream) => ({ ...common, ...stream }));
}
