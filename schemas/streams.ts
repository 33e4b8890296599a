// The JetStream streams and their subjects, with the bounds of each, as data.
// ops/platform/nats/open_log.ts creates them. The KV buckets are in buckets.ts, the subjects of
// plain messages in schemas/signals.
import type { StreamConfig } from '@nats-io/jetstream';
import { DiscardPolicy, RetentionPolicy, StorageType, StoreCompression } from '@nats-io/jetstream';

const GIB = 1024 ** 3;
const HOUR_NANOS = 3_600_000_000_000;

/** The ingest log, or the first of its streams; see schemas/log_layout.ts. */
export const INGEST_STREAM = 'INGEST';
export const EVENTS_STREAM = 'EVENTS';
export const DEAD_LETTERS_STREAM = 'DEAD_LETTERS';
export const AUDIT_STREAM = 'AUDIT';
export const MAIL_STREAM = 'MAIL';
export const WEBHOOKS_STREAM = 'WEBHOOKS';
export const JUDGING_STREAM = 'JUDGING';
export const SCORES_STREAM = 'SCORES';
export const PENDING_SCORES_STREAM = 'PENDING_SCORES';
export const LANGFUSE_STREAM = 'LANGFUSE';
/** Name of the queue of PENDING_SCORES, the stage of its dead letters. */
export const PENDING_SCORES_QUEUE = 'pending_scores';
export const CACHE_STREAM = 'GATEWAY_CACHE';

/** Subject of a partition of the ingest log. */
export const ingestSubject = (partition: number): string => `ingest.${partition}`;
/** Subjects of an ingest log with one stream. */
export const INGEST_SUBJECTS = 'ingest.*';
/**
 * Subject of messages that carry events of several partitions. Every message costs a sync of the
 * disk, so events that are too few for a message of their own travel together, and each reader
 * takes those of its partitions. This is the subject of the first stream of the first generation;
 * mixedSubject has the others.
 */
export const MIXED_SUBJECT = 'ingest.mixed';

/** True for the stream that every ingest log began with before it could have several. */
const isFirst = (generation: number, index: number): boolean => generation === 1 && index === 0;

/**
 * Name of a stream of the ingest log.
 * @param generation number of its generation, from 1 on
 * @param index place of its range of partitions in the generation, from 0 on
 */
export function ingestStream(generation: number, index: number): string {
  if (isFirst(generation, index)) return INGEST_STREAM;
  return generation === 1 ? `${INGEST_STREAM}_${index}` : `${INGEST_STREAM}_${generation}_${index}`;
}
/** Subject of the mixed messages of a stream of the ingest log. Parameters as in ingestStream. */
export const mixedSubject = (generation: number, index: number): string =>
  isFirst(generation, index) ? MIXED_SUBJECT : `${MIXED_SUBJECT}_${generation}_${index}`;
/** Subject of the last message of a stream of the ingest log. Parameters as in ingestStream. */
export const endSubject = (generation: number, index: number): string => `ingest_end.${generation}.${index}`;
/** Returns true for the name of a stream of the ingest log, of any generation. */
export const isIngestStream = (name: string): boolean => /^INGEST(_\d+){0,2}$/.test(name);
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
/**
 * Subject of an organization's scores whose trace has not arrived. Each organization has its own,
 * which bounds how many wait.
 * @param org token of the organization, without dots
 */
export const pendingScoresSubject = (org: string): string => `pending_scores.${org}`;
/**
 * Subject of the events of one trace in Langfuse's older protocol. Each trace has its own, so that
 * its events can be deleted together.
 * @param org token of the organization, without dots
 * @param trace digest of the trace id
 */
export const langfuseSubject = (org: string, trace: string): string => `langfuse.${org}.${trace}`;
/** Subjects of all traces of an organization in Langfuse's older protocol. @param org as above */
export const langfuseSubjects = (org: string): string => `langfuse.${org}.>`;
/** Maximum scores of one organization that wait for their traces. */
export const PENDING_SCORES_ORG_MAX = 10_000;
/**
 * Subject of a cached answer of the gateway.
 * @param org token of the organization, without dots
 * @param digest SHA-256 of the call
 */
export const cacheSubject = (org: string, digest: string): string => `gateway_cache.${org}.${digest}`;
/** Longest time for which an answer of the gateway can be cached: 30 days. */
export const CACHE_SECONDS_MAX = 2_592_000;
/** Largest answer of the gateway that is cached. */
export const CACHE_ANSWER_BYTES_MAX = 1024 * 1024;
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

export interface StreamLimits {
  replicas: number;
  /** Maximum bytes of the ingest log; its streams share them. At the bound, ingest answers 429. */
  logBytesMax: number;
}

export type StreamSpec = Partial<StreamConfig> & { name: string };

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
    // Scores wait here until their trace arrives, at most a day. An organization that has as many
    // waiting as it may is refused, and leaves room for the others.
    ...WORK_QUEUE,
    name: PENDING_SCORES_STREAM,
    subjects: ['pending_scores.*'],
    max_bytes: GIB / 4,
    max_msg_size: SCORE_BYTES_MAX,
    max_msgs_per_subject: PENDING_SCORES_ORG_MAX,
    discard_new_per_subject: true,
  },
  // Events wait here until their trace is folded into spans, for some seconds in most cases. A full
  // stream rejects: the API answers 429.
  { name: LANGFUSE_STREAM, subjects: ['langfuse.*.*'], max_bytes: GIB / 2, discard: DiscardPolicy.New },
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
    // Each subject holds the newest answer of one call. A full stream deletes its oldest answers.
    name: CACHE_STREAM,
    subjects: ['gateway_cache.*.*'],
    max_bytes: GIB / 4,
    max_age: (CACHE_SECONDS_MAX / 3600) * HOUR_NANOS,
    max_msg_size: CACHE_ANSWER_BYTES_MAX + 4096,
    max_msgs_per_subject: 1,
    allow_direct: true,
    discard: DiscardPolicy.Old,
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

/** Returns the configuration of every stream except those of the ingest log. */
export function streamConfigs({ replicas }: Pick<StreamLimits, 'replicas'>): StreamSpec[] {
  return STREAMS.map((stream) => ({ ...commonOf(replicas), ...stream }));
}

/** A stream of the ingest log: what its configuration depends on. */
export interface IngestStreamSpec {
  name: string;
  subjects: string[];
  /** Number of streams that share the bytes of the log. */
  siblings: number;
}

/** Returns the configuration of a stream of the ingest log. */
export function ingestConfig(
  { name, subjects, siblings }: IngestStreamSpec,
  { replicas, logBytesMax }: StreamLimits,
): StreamSpec {
  // A full ingest log rejects (429) so that it never loses an acknowledged event. The janitor of
  // the pipeline purges consumed messages, so the log is full only when landing is behind.
  // Its blocks are not compressed: S2 saves a third of the disk (prompts of random words), and costs
  // as much CPU as everything else that nats-server does for an event.
  return {
    ...commonOf(replicas),
    name,
    subjects,
    max_bytes: Math.floor(logBytesMax / siblings),
    discard: DiscardPolicy.New,
    compression: StoreCompression.None,
  };
}

const commonOf = (replicas: number) => ({
  storage: StorageType.File,
  num_replicas: replicas,
  retention: RetentionPolicy.Limits,
  max_msg_size: MESSAGE_BYTES_MAX,
  duplicate_window: DUPLICATE_WINDOW_NANOS,
  // A replica writes its blocks after the log of the cluster. After a kill -9, nats-server 2.15
  // met a half-written compressed block ("s2: corrupt input"): the replica accepted nothing until
  // its server restarted, and its consumers stood still.
  compression: replicas > 1 ? StoreCompression.None : StoreCompression.S2,
});
