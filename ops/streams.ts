// JetStream streams and KV buckets as data, and the one function that makes them so.
import type { JetStreamClient, JetStreamManager, StreamConfig } from '@nats-io/jetstream';
import { DiscardPolicy, RetentionPolicy, StorageType, StoreCompression, jetstream, jetstreamManager } from '@nats-io/jetstream';
import { type KV, Kvm } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';

const GIB = 1024 ** 3;
const HOUR_NANOS = 3_600_000_000_000;

export const INGEST_STREAM = 'INGEST';
export const EVENTS_STREAM = 'EVENTS';
export const DEAD_LETTERS_STREAM = 'DEAD_LETTERS';

/** Subject of a partition of the ingest log. */
export const ingestSubject = (partition: number): string => `ingest.${partition}`;
/**
 * Subject of messages that carry events of several partitions. Every message costs a sync of the disk, so what is too
 * little for a message of its own travels together; each reader takes its own partitions' events out of it.
 */
export const MIXED_SUBJECT = 'ingest.mixed';
/** Subject of the platform events that one worker publishes. */
export const EVENTS_SUBJECT = 'events.batch';
/** Subject of a dead letter. */
export const deadLetterSubject = (stage: string): string => `dead.${stage}`;

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
  idempotency: { ttlHours: 24, history: 1 },
} as const;
export type BucketName = keyof typeof BUCKETS;

export interface StreamLimits {
  replicas: number;
  /** Bytes that the ingest log may hold before ingest answers 429. */
  logBytesMax: number;
}

function streamConfigs(limits: StreamLimits): (Partial<StreamConfig> & { name: string })[] {
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
      compression: StoreCompression.S2,
      duplicate_window: 120_000_000_000,
    },
    {
      ...common,
      name: EVENTS_STREAM,
      subjects: ['events.*'],
      max_bytes: 2 * GIB,
      max_age: 48 * HOUR_NANOS,
      discard: DiscardPolicy.Old,
      compression: StoreCompression.S2,
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
  ];
}

/** Handles on JetStream that a process needs. */
export interface Log {
  nc: NatsConnection;
  js: JetStreamClient;
  jsm: JetStreamManager;
  bucket(name: BucketName): Promise<KV>;
}

/**
 * Makes or updates every stream and bucket, and checks that the server kept what was asked (servers before 2.10 drop
 * unknown fields without a word).
 * @throws Error naming the stream and the field that the server did not keep.
 */
export async function openLog(nc: NatsConnection, limits: StreamLimits): Promise<Log> {
  const jsm = await jetstreamManager(nc);
  for (const config of streamConfigs(limits)) {
    const exists = await jsm.streams.info(config.name).then(
      () => true,
      () => false,
    );
    const { name, ...update } = config;
    const info = exists ? await jsm.streams.update(name, update) : await jsm.streams.add(config);
    for (const field of ['max_bytes', 'discard', 'compression'] as const) {
      if (config[field] !== undefined && info.config[field] !== config[field])
        throw new Error(
          `nats-server kept ${name}.${field} = ${String(info.config[field])}, not ${String(config[field])}; it needs to be 2.10 or newer`,
        );
    }
  }
  const kvm = new Kvm(nc);
  const opened = new Map<BucketName, Promise<KV>>();
  const bucket = (name: BucketName): Promise<KV> => {
    let kv = opened.get(name);
    if (kv === undefined) {
      const { ttlHours, history } = BUCKETS[name];
      kv = kvm.create(name, {
        history,
        replicas: limits.replicas,
        storage: StorageType.File,
        ...(ttlHours > 0 ? { ttl: ttlHours * 3_600_000 } : {}),
      });
      opened.set(name, kv);
    }
    return kv;
  };
  await Promise.all((Object.keys(BUCKETS) as BucketName[]).map(bucket));
  return { nc, js: jetstream(nc), jsm, bucket };
}

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
    const decided = await kv.get(key);
    if (decided?.operation === 'PUT') return decided.json<T>();
    throw error;
  }
}

/** The number of partitions of the ingest log: fixed by the first process that asks, for as long as the log exists. */
export async function fixedPartitions(log: Log, wanted: number): Promise<number> {
  return (await settle(log, 'config', () => Promise.resolve({ partitions: wanted }))).partitions;
}
