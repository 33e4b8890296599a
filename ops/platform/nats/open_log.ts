// Creates the streams of schemas/streams.ts and the buckets of schemas/buckets.ts in NATS, and
// gives a process its handles on them. Guarantees: once a process has a Log, every stream and
// bucket exists with its declared bounds, also in a cluster that is still forming.
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
import { firstLayout } from '../../../schemas/log_layout.ts';
import { LOG_LAYOUT_KEY } from '../../../schemas/records/log_layout.ts';
import { INGEST_STREAM, streamConfigs, type StreamLimits } from '../../../schemas/streams.ts';
import type { Env } from '../env.ts';
import { isLostWrite, waitAfterLostWrite } from './conflict.ts';
import { LogStreams, streamState, TooManyStreams } from './log_streams.ts';

/** The handles of a process on JetStream. */
export interface Log {
  nc: NatsConnection;
  js: JetStreamClient;
  jsm: JetStreamManager;
  /** The streams of the ingest log. */
  streams: LogStreams;
  bucket(name: BucketName): Promise<KV>;
}

export interface LogLimits extends StreamLimits {
  /**
   * Number of streams of a new ingest log, and of its partitions unless they are fixed already.
   * Unset: one stream. An existing log keeps its streams.
   */
  streams?: { count: number; partitions: number };
}

/** Returns the limits that the settings of a process give the log. */
export const logLimits = (
  env: Pick<Env, 'SERVICE_NATS_REPLICAS' | 'SERVICE_LOG_MAX_BYTES' | 'SERVICE_LOG_STREAMS' | 'SERVICE_PARTITIONS'>,
): LogLimits => ({
  replicas: env.SERVICE_NATS_REPLICAS,
  logBytesMax: env.SERVICE_LOG_MAX_BYTES,
  streams: { count: env.SERVICE_LOG_STREAMS, partitions: env.SERVICE_PARTITIONS },
});

/**
 * Maximum time for a cluster to elect a leader and gather its nodes, and for another process to
 * finish creating what this one also needs.
 */
const OPEN_MS_MAX = 60_000;
const OPEN_RETRY_MS = 250;

/**
 * Creates or updates every stream and bucket, and checks that the server kept the settings: servers
 * before 2.10 silently drop fields that they do not know. Waits up to OPEN_MS_MAX for a cluster
 * that is not ready.
 * @throws Error naming the stream and the field that the server did not keep, or what did not
 * become ready
 */
export async function openLog(nc: NatsConnection, limits: LogLimits): Promise<Log> {
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
  const js = jetstream(nc);
  const streams = await untilReady('the ingest log', deadline, async () => {
    await settleLayout({ jsm, bucket }, limits);
    const kv = await bucket('service');
    return LogStreams.open({ nc, js, jsm, kv, limits, makeStream: (config) => makeStream(jsm, config) });
  });
  return { nc, js, jsm, streams, bucket };
}

/**
 * Decides which streams a new ingest log has. A log of an older version has one.
 * @throws TooManyStreams
 */
async function settleLayout(log: Pick<Log, 'jsm' | 'bucket'>, { streams }: LogLimits): Promise<void> {
  await settle(log, LOG_LAYOUT_KEY, async () => {
    const count = (await streamState(log.jsm, INGEST_STREAM)) === null ? (streams?.count ?? 1) : 1;
    if (count === 1 || streams === undefined) return firstLayout(1, 1);
    const partitions = await fixedPartitions(log, streams.partitions);
    if (count > partitions) throw new TooManyStreams(count, partitions);
    return firstLayout(count, partitions);
  });
}

/**
 * Opens streams and buckets without creating or updating them: for an operator's command, which
 * does not know the replicas and bounds of the service.
 * @throws Error when no process of the service has created them yet
 */
export async function attachLog(nc: NatsConnection): Promise<Log> {
  const jsm = await jetstreamManager(nc);
  const streams = new Set<string>();
  for await (const name of jsm.streams.names()) streams.add(name);
  // Only the names are used here, so the replicas do not matter.
  const missing = streamConfigs({ replicas: 1 }).find(({ name }) => !streams.has(name));
  if (missing !== undefined)
    throw new Error(
      `NATS at ${nc.getServer()} has no stream ${missing.name}: no process of the service has been started on it`,
    );
  const kvm = new Kvm(nc);
  const js = jetstream(nc);
  const kv = await kvm.open('service');
  // Nothing is created through this log, so the limits do not matter.
  const limits = { replicas: 1, logBytesMax: 1 };
  const makeStream = (): Promise<void> => Promise.reject(new Error('an attached log creates no streams'));
  return {
    nc,
    js,
    jsm,
    streams: await LogStreams.attach({ nc, js, jsm, kv, limits, makeStream }),
    bucket: (name) => kvm.open(name),
  };
}

const STREAM_NOT_FOUND = 10059;
/**
 * JetStream's error codes of a cluster that is not ready: it has no leader or too few nodes, or
 * another process is creating the stream just now.
 */
const NOT_READY = new Set([10004, 10005, 10008, 10009, 10058, STREAM_NOT_FOUND, 10118]);

function isNotReady(error: unknown): boolean {
  if (error instanceof JetStreamApiError) return NOT_READY.has(error.code);
  // No answer: there is no leader yet. For an account without JetStream, the cause is an answer of
  // the server.
  if (error instanceof Error && error.name === 'JetStreamNotEnabled')
    return !(error.cause instanceof JetStreamApiError);
  return error instanceof errors.TimeoutError || error instanceof errors.RequestError;
}

/**
 * Repeats an attempt until the cluster is ready or the deadline has passed.
 * @throws what the last attempt threw, with the name of what was attempted
 */
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

/**
 * Creates a stream, or updates it where its settings differ: an update is a decision of the whole
 * cluster.
 */
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
        `nats-server kept ${name}.${field} = ${String(info.config[field])}, not ${config[field]}; it needs to be 2.10 or newer`,
      );
  }
}

const REMAKE_RETRY_MS = 100;

/**
 * Creates the in-memory buckets again after every reconnect: a restarted nats-server has lost them.
 */
async function remakeInMemory(nc: NatsConnection, make: (name: BucketName) => Promise<KV>): Promise<void> {
  const names = (Object.keys(BUCKETS) as BucketName[]).filter((name) => 'inMemory' in BUCKETS[name]);
  for await (const status of nc.status()) {
    if (status.type !== 'reconnect') continue;
    // JetStream starts a little later than the connection. The loop ends when the connection
    // closes.
    for (let made = false; !made && !nc.isClosed();) {
      made = await Promise.all(names.map(make)).then(
        () => true,
        () => false,
      );
      if (!made) await new Promise((resolve) => setTimeout(resolve, REMAKE_RETRY_MS));
    }
  }
}

/** Number of revisions that a bucket keeps of a key: the newest alone. */
const REVISIONS_KEPT = 1;

/** Creates a bucket, or updates the bounds of an existing one. */
async function openBucket(
  name: string,
  { ttlHours, bytesMax, whenFull, inMemory }: BucketSpec,
  { kvm, jsm, replicas }: { kvm: Kvm; jsm: JetStreamManager; replicas: number },
): Promise<KV> {
  const kv = await kvm.create(name, {
    history: REVISIONS_KEPT,
    replicas,
    storage: inMemory === true ? StorageType.Memory : StorageType.File,
    // Any replica answers a direct read, also one that lags; a writer that lost must read the write
    // that won.
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

/**
 * Maximum number of reads for a value that another process has decided; they take some seconds in
 * all.
 */
const SETTLE_TRIES_MAX = 100;

/**
 * Decides a fact of the cluster once: the first process writes its proposal, and every other
 * process takes that value.
 * @returns the decided value
 */
export async function settle<T>(log: Pick<Log, 'bucket'>, key: string, propose: () => Promise<T>): Promise<T> {
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

/**
 * Returns the number of partitions of the ingest log. The first process that asks fixes it for as
 * long as the log exists.
 */
export async function fixedPartitions(log: Pick<Log, 'bucket'>, wanted: number): Promise<number> {
  return (await settle(log, 'config', () => Promise.resolve({ partitions: wanted }))).partitions;
}

/**
 * Key of the number that the store adds to the positions of this log; a worker writes it.
 */
export const LOG_PLACE_KEY = 'log';

/**
 * Returns a reader of the number that the store adds to the positions of this log. The
 * reader returns null until a worker has written the number, which never changes afterwards and is
 * not read again.
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
