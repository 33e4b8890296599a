// JetStream streams, their subjects, and KV buckets, with their bounds, as data.
// ops/platform/nats/open_log.ts creates them. Subjects of plain messages are in schemas/signals.
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
 * Subject of messages that carry events of several partitions. Every message costs a sync of the
 * disk, so events that are too few for a message of their own travel together, and each reader
 * takes those of its partitions.
 */
export const MIXED_SUBJECT = 'ingest.mixed';
/** Subject of the platform events that one worker publishes. */
export const EVENTS_SUBJECT = 'events.batch';
/** Subject of the intents and outcomes of mutations, for the audit log. */
export const AUDIT_SUBJECT = 'audit.entry';
/** Largest audit entry: 16 KiB of changes, and ids. It bounds what readers hold for each. */
const AUDIT_BYTES_MAX = 64 * 1024;
/**
 * Largest mail: what ops/exchange/mail_queue.ts accepts, in the longest UTF-8. It bounds what
 * readers hold for each.
 */
export const MAIL_BYTES_MAX = 256 * 1024;
/** Subject of outgoing mails. */
export const MAIL_SUBJECT = 'mail.send';
/**
 * Subject of the deliveries of one receiver. Each receiver has its own, so that its waiting
 * deliveries can be counted and purged.
 */
export const webhookSubject = (org: string, target: string): string => `webhooks.${org}.${target}`;
/** Subject of the judging tasks of one kind. */
export const judgingSubject = (kind: 'live' | 'eval' | 'dataset'): string => `judging.${kind}`;
/** Subject of scores that people give. */
export const SCORES_SUBJECT = 'scores.given';
/** Largest score: a comment of 10,000 characters in the longest UTF-8, and ids. */
const SCORE_BYTES_MAX = 64 * 1024;
/** Subject of a dead letter. */
export const deadLetterSubject = (stage: string): string => `dead.${stage}`;

/** Largest judging task: it names at most a few hundred traces of 128 characters. */
export const JUDGING_MESSAGE_BYTES_MAX = 128 * 1024;
/** Largest webhook delivery; platform events have a few hundred bytes. */
export const WEBHOOK_MESSAGE_BYTES_MAX = 256 * 1024;
/**
 * Largest message of a stream: a 5 MiB event with its envelope fits. nats-server's max_payload is
 * the same.
 */
export const MESSAGE_BYTES_MAX = 8 * 1024 * 1024;

export const BUCKETS = {
  /** Cluster facts that never change after the first start: the number of partitions. */
  service: { ttlHours: 0, history: 1 },
  orgs: { ttlHours: 0, history: 1 },
  /**
   * Deletions of organizations: those that run, and the newest of each organization id that was
   * deleted.
   */
  org_deletions: { ttlHours: 0, history: 1 },
  /**
   * API keys by SHA-256 of the raw key. Markers of deletions never expire: they show that the first
   * key was revoked.
   */
  api_keys: { ttlHours: 0, history: 1 },
  /** Owner, epoch and checkpoint of each partition. */
  partitions: { ttlHours: 0, history: 1 },
  /** Locks and answers of requests with an Idempotency-Key, except ingest. */
  idempotency: { ttlHours: 24, history: 1, bytesMax: GIB, whenFull: 'refuse' },
  /**
   * Outcomes of ingest requests with an Idempotency-Key, some 250 bytes each. The log still
   * recognizes the events of one that was evicted.
   */
  ingest_keys: { ttlHours: 24, history: 1, bytesMax: GIB / 4, whenFull: 'forget' },
  /**
   * Ingest requests with an Idempotency-Key that run now. Entries live longer than any request, and
   * short enough that a process that died blocks no key for long.
   */
  ingest_claims: { ttlHours: 5 / 3600, history: 1, bytesMax: GIB / 64, whenFull: 'forget', inMemory: true },
  agents: { ttlHours: 0, history: 1 },
  /**
   * Register tokens by organization and SHA-256 of the raw token, kept longer than a token is
   * valid, so that an expired token is distinguished from an invalid one.
   */
  register_tokens: { ttlHours: 48, history: 1 },
  /** Grants of members on single resources. */
  grants: { ttlHours: 0, history: 1 },
  /** Settings of each organization for its telemetry. */
  policies: { ttlHours: 0, history: 1 },
  /** Each organization's own prices of models. */
  prices: { ttlHours: 0, history: 1 },
  /** The repricing that is being carried out. */
  repricings: { ttlHours: 0, history: 1 },
  /** Each organization's settings of cost-anomaly detection. */
  cost_configs: { ttlHours: 0, history: 1 },
  /** Limits and alerts of each organization. */
  budgets: { ttlHours: 0, history: 1 },
  /** Alerts sent and limits reached in each organization's budget period. */
  budget_states: { ttlHours: 0, history: 1 },
  /** Webhook endpoints, by organization and id. */
  webhooks: { ttlHours: 0, history: 1 },
  /** Dead-lettered deliveries, by organization, receiver and event; the oldest are evicted. */
  webhook_dead_letters: { ttlHours: 720, history: 1, bytesMax: GIB, whenFull: 'forget' },
  /** Incidents that are open, or whose end is not published yet, by organization and cluster. */
  incidents: { ttlHours: 0, history: 1 },
  /** Newest version of each judge, by organization and id. */
  judges: { ttlHours: 0, history: 1 },
  /** Older versions of judges, by organization, id and version; read one by one. */
  judge_versions: { ttlHours: 0, history: 1 },
  /** Last live judgement of each agent's traces by each LLM judge. */
  judging_marks: { ttlHours: 720, history: 1 },
  /** Calls of LLM judges of each organization in its period. */
  judge_quotas: { ttlHours: 0, history: 1 },
  /**
   * Upstreams' answers to judges, by organization and call, until they are recorded in the log: a
   * repeated task does not call again. The oldest are evicted.
   */
  judging_answers: { ttlHours: 24, history: 1, bytesMax: GIB / 4, whenFull: 'forget' },
  /** Evals and dataset runs: request, progress and results. */
  evals: { ttlHours: 0, history: 1 },
  /** Trace ids of evals, by eval and part. */
  eval_chunks: { ttlHours: 720, history: 1 },
  /** Name, version and size of each dataset, by organization and id. */
  datasets: { ttlHours: 0, history: 1 },
  /** Items of datasets, by organization, id and part; read one by one. */
  dataset_items: { ttlHours: 0, history: 1 },
  /** Prompt templates, by organization, name and version. */
  prompts: { ttlHours: 0, history: 1 },
  /** Redaction policy of each organization. */
  pii_policies: { ttlHours: 0, history: 1 },
  /** Retention policy of each organization, and when it takes effect. */
  retention_policies: { ttlHours: 0, history: 1 },
  /** Long jobs (restore, erase) and their progress, by organization and id. */
  job_records: { ttlHours: 2160, history: 1 },
  /**
   * Values whose data is to be erased, sealed, until the job is done; a job takes less than the
   * expiry.
   */
  erase_asks: { ttlHours: 168, history: 1 },
  /** Analysts of organizations, by user, with the hash of each password. */
  analysts: { ttlHours: 0, history: 1 },
  /** Holder and last run of each scheduled job. */
  jobs: { ttlHours: 0, history: 1 },
} as const satisfies Record<string, BucketSpec>;
export type BucketName = keyof typeof BUCKETS;

export interface BucketSpec {
  /** Hours after which an entry expires; 0 for never. */
  ttlHours: number;
  history: number;
  /** Maximum bytes, and what happens there: writes are rejected, or the oldest keys evicted. */
  bytesMax?: number;
  whenFull?: 'refuse' | 'forget';
  /**
   * True to keep the bucket in memory only: a restart of nats-server loses it, and no write waits
   * for the disk.
   */
  inMemory?: boolean;
}

export interface StreamLimits {
  replicas: number;
  /** Maximum bytes of the ingest log; at the bound, ingest answers 429. */
  logBytesMax: number;
}

type StreamSpec = Partial<StreamConfig> & { name: string };

/** Window within which a stream stores a message id once. */
const DUPLICATE_WINDOW_NANOS = 120_000_000_000;

/**
 * A work queue: a message is deleted when it is acknowledged, and a full queue rejects. Rejected
 * work counts as not done.
 */
const WORK_QUEUE = { retention: RetentionPolicy.Workqueue, discard: DiscardPolicy.New } as const;

/**
 * Streams whose bounds no setting changes. Blocks are compressed unless `compression` says
 * otherwise.
 */
const STREAMS: readonly StreamSpec[] = [
  {
    // Old messages are deleted so that a reader never delays the publishers: one that is 2 GiB
    // (some 8 million events) or a week behind loses the oldest.
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
    // The publishers in pipeline/delivery bound what waits for a receiver, for an organization and
    // in all, and dead-letter the rest. Their bounds are below this one, so that the next attempt
    // of a delivery always has room.
    ...WORK_QUEUE,
    name: WEBHOOKS_STREAM,
    subjects: ['webhooks.*.*'],
    max_bytes: GIB,
    max_msg_size: WEBHOOK_MESSAGE_BYTES_MAX,
  },
  {
    // A full queue deletes its oldest live tasks: a judgement that is hours late is worth less than
    // one that is due now. Evals enqueue their next chunk when one is done, so they hold a few
    // messages each.
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
  // A full ingest log rejects (429) so that it never loses an acknowledged event. The janitor of
  // the pipeline purges consumed messages, so the log is full only when landing is behind.
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
    // A replica writes its blocks after the log of the cluster. After a kill -9, nats-server 2.15
    // met a half-written compressed block ("s2: corrupt input"): the replica accepted nothing until
    // its server restarted, and its consumers stood still.
    compression: replicas > 1 ? StoreCompression.None : StoreCompression.S2,
  };
  return [ingest, ...STREAMS].map((stream) => ({ ...common, ...stream }));
}
