// The JetStream streams and their subjects as data, with the bounds of each. ops/platform/nats/open_log.ts
// creates them. The KV buckets are listed in buckets.ts.
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

export interface StreamLimits {
  replicas: number;
  /** Bytes that the ingest log may hold before ingest answers 429. */
  logBytesMax: number;
}

/** What every stream is to be. */
export function streamConfigs(limits: StreamLimits): (Partial<StreamConfig> & { name: string })[] {
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
