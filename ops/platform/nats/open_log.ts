// Makes the streams and buckets of schemas/streams.ts in NATS, and hands a process its way to them. Guarantees: whoever has a Log finds every
// stream and bucket there with the bounds that they are to have, in a cluster that is just forming too.
import { isDeepStrictEqual } from 'node:util';
import {
  DiscardPolicy,
  JetStreamApiError,
  type JetStreamClient,
  type JetStreamManager,
  StorageType,
  type StreamConfig,
  jetstream,
  jetstreamManager,
} from '@nats-io/jetstream';
import { type KV, Kvm } from '@nats-io/kv';
import { errors, type NatsConnection } from '@nats-io/transport-node';
import { type BucketName, BUCKETS, type BucketSpec } from '../../../schemas/buckets.ts';
import { streamConfigs, type StreamLimits } from '../../../schemas/streams.ts';
import { isLostWrite, waitAfterLostWrite } from './conflict.ts';

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
  if (nc.info?.jetstream !== true)
    throw new Error(`NATS at ${nc.getServer()} runs without JetStream (start it with -js)`);
  const deadline = performance.now() + OPEN_MS_MAX;
  const jsm = await untilReady('JetStream', deadline, () => jetstreamManager(nc));
  for (const config of streamConfigs(limits)) await untilReady(config.name, deadline, () => makeStream(jsm, config));
  const kvm = new Kvm(nc);
  const opened = new Map<BucketName, Promise<KV>>();
  const open = (name: BucketName): Promise<KV> =>
    openBucket(name, BUCKETS[name], { kvm, jsm, replicas: limits.replicas });
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

/**
 * Takes streams and buckets as they are, for an operator's command: whose shell knows nothing of the service's replicas and bounds.
 * @throws Error where no process of the service has made them yet
 */
export async function attachLog(nc: NatsConnection): Promise<Log> {
  const jsm = await jetstreamManager(nc);
  const streams = new Set<string>();
  for await (const name of jsm.streams.names()) streams.add(name);
  // The bounds are of no consequence here: only names are looked at.
  const missing = streamConfigs({ replicas: 1, logBytesMax: 1 }).find(({ name }) => !streams.has(name));
  if (missing !== undefined)
    throw new Error(
      `NATS at ${nc.getServer()} has no stream ${missing.name}: no process of the service has been started on it`,
    );
  const kvm = new Kvm(nc);
  return { nc, js: jetstream(nc), jsm, bucket: (name) => kvm.open(name) };
}

const STREAM_NOT_FOUND = 10059;
/** JetStream's error codes of a cluster that is not ready: no leader, too few nodes, a stream that another process is making just now. */
const NOT_READY = new Set([10004, 10005, 10008, 10009, 10058, STREAM_NOT_FOUND, 10118]);

function isNotReady(error: unknown): boolean {
  if (error instanceof JetStreamApiError) return NOT_READY.has(error.code);
  // Nobody answers, as there is no leader yet; an account without JetStream has an answer of the server as its cause.
  if (error instanceof Error && error.name === 'JetStreamNotEnabled')
    return !(error.cause instanceof JetStreamApiError);
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
    kept === null ||
    Object.entries(config).some(([field, value]) => !isDeepStrictEqual(kept[field as keyof StreamConfig], value));
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

/** Revisions of a key that a bucket keeps: the newest alone. */
const REVISIONS_KEPT = 1;

/** Makes a bucket, or brings the bounds of one that exists to what they are now. */
async function openBucket(
  name: string,
  { ttlHours, bytesMax, whenFull, inMemory }: BucketSpec,
  { kvm, jsm, replicas }: { kvm: Kvm; jsm: JetStreamManager; replicas: number },
): Promise<KV> {
  const kv = await kvm.create(name, {
    history: REVISIONS_KEPT,
    replicas,
    storage: inMemory === true ? StorageType.Memory : StorageType.File,
    // Direct reads are answered by any replica, also by one that is behind: whoever lost a write must read what won.
    allow_direct: replicas === 1,
    ...(ttlHours === undefined ? {} : { ttl: ttlHours * 3_600_000 }),
    ...(bytesMax === undefined ? {} : { max_bytes: bytesMax }),
  });
  const stream = `KV_${name}`;
  const bounds = {
    num_replicas: replicas,
    ...(bytesMax === undefined
      ? {}
      : { max_bytes: bytesMax, discard: whenFull === 'forget' ? DiscardPolicy.Old : DiscardPolicy.New }),
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

/** Where a worker settles what the store adds to JetStream sequences of this log. */
export const LOG_PLACE_KEY = 'log';

/**
 * Returns a reader of what the store adds to JetStream sequences of this log. The reader gives null while no worker has settled it;
 * once settled it never changes, and is not read again.
 */
export function logBaseReader(log: Pick<Log, 'bucket'>): () => Promise<number | null> {
  let base: number | null = null;
  return async () => {
    if (base !== null) return base;
    const entry = await (await log.bucket('service')).get(LOG_PLACE_KEY);
    if (entry?.operation === 'PUT') base = entry.json<{ base: number }>().base;
    return base;
  };
}
