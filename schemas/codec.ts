// Avro codecs of every message that crosses a process boundary on JetStream. Each message names its
// schema by fingerprint in the header Schema-Fingerprint, so that a reader rejects a schema that it
// does not know instead of misreading the message.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import avsc from 'avsc';
import type { AuditActor, AuditTarget } from './records/audit.ts';

export type SourceFormat = 'chatcompletion' | 'messages' | 'chain' | 'custom' | 'app' | 'otlp' | 'gateway';

/** One accepted event, as it stands in the ingest log. */
export interface IngestEvent {
  org_id: string;
  format: SourceFormat;
  /** First 16 hex characters of SHA-256 over body. */
  event_hex: string;
  trace_id: string;
  /** Milliseconds since the epoch. */
  received_at: number;
  /** Compact JSON, key order as received. */
  body: string;
  /** API key that sent the event; empty or left out for none. */
  key_id?: string;
  /** Labels of that key, which count where the event names no user or department. */
  label_user_id?: string;
  label_department?: string;
  /** True for an event of the past: it is metered on the day it began, and fires nothing. */
  backfill?: boolean;
}

/** One platform event (trace.started, …) for webhooks and mail. */
export interface ServiceEvent {
  event_id: string;
  event: string;
  org_id: string;
  /** Milliseconds since the epoch. */
  created_at: number;
  /** JSON object with the payload fields of the event catalog. */
  payload: string;
}

/** Corrections to the cost of spans of one partition. */
export interface CostCorrections {
  /** Id of the message, hex16: the same at every repetition, and unique. */
  correction_hex: string;
  org_id: string;
  changes: CostChange[];
}

/** Change to the cost of a trace, and to the use of an hour and a day. */
export interface CostChange {
  trace_id: string;
  /** Start of the hour (UTC) in which the events were received, milliseconds since the epoch. */
  hour: number;
  /** Day (UTC) on which the events began, days since the epoch. */
  day: number;
  agent_id: string;
  model: string;
  department: string;
  realm: string;
  /** Decimal text; negative where the cost was too high. */
  cost_usd: string;
}

export interface DeadLetter {
  stage: string;
  reason: string;
  detail: string;
  partition: number;
  log_seq: number;
  log_index: number;
  died_at: number;
  org_id: string;
  format: string;
  event_hex: string;
  trace_id: string;
  received_at: number;
  body: Buffer;
}

/** One half of the record of a mutation: its intent or its outcome. */
export interface AuditEntry {
  audit_id: string;
  phase: 'intent' | 'done' | 'failed';
  org_id: string;
  actor_type: AuditActor['type'];
  actor_id: string;
  action: string;
  target_type: AuditTarget['type'];
  target_id: string;
  /** JSON object; {} in an intent. */
  changes: string;
  request_id: string;
  ip: string;
  /** Time of the intent, milliseconds since the epoch; the same in both halves. */
  created_at: number;
}

/** One outgoing mail, as plain text. */
export interface Mail {
  /** The same at every attempt. */
  mail_id: string;
  org_id: string;
  /** A single address. */
  to: string;
  subject: string;
  text: string;
  /** Part of the text that no log may show; empty when there is none. */
  secret: string;
  /** Milliseconds since the epoch. */
  created_at: number;
}

/** One platform event for one receiver. */
export interface WebhookDelivery {
  /** The same at every attempt. */
  event_id: string;
  event: string;
  org_id: string;
  target_kind: 'endpoint' | 'alert';
  target_id: string;
  /** The JSON that is signed and sent, byte for byte. */
  body: string;
  /** Creation of the event, milliseconds since the epoch. */
  created_at: number;
  /** Number of failed attempts before this one. */
  attempt: number;
  /** Milliseconds since the epoch; 0 before the first attempt. */
  first_attempt_at: number;
  /** Time before which no attempt is made, milliseconds since the epoch; 0 for none. */
  not_before: number;
}

/** Judging work: a live trace for one LLM judge, or a chunk of an eval or dataset run. */
export interface JudgingTask {
  /** The same at every repetition. */
  task_id: string;
  kind: 'live' | 'eval' | 'dataset';
  org_id: string;
  judge_id: string;
  judge_version: number;
  /** Agent of a live trace; empty when the trace names none. */
  agent_id: string;
  /** Empty for live tasks. */
  eval_id: string;
  /** Index of the chunk in its eval; 0 for live tasks. */
  chunk: number;
  /** The one trace of a live task; the traces of a chunk, unless the eval's record names them. */
  trace_ids: string[];
  /** Milliseconds since the epoch. */
  created_at: number;
}

/** Score that a person or an application gives to a trace or a span. */
export interface UserScore {
  score_id: string;
  org_id: string;
  trace_id: string;
  /** Empty when the score is for the trace as a whole. */
  span_id: string;
  /** Milliseconds since the epoch. */
  trace_started_at: number;
  name: string;
  data_type: 'numeric' | 'boolean' | 'categorical';
  /** Numeric score; 1 or 0 for a boolean, null for a category. */
  number: number | null;
  /** Category; empty otherwise. */
  text: string;
  comment: string;
  author_type: 'user' | 'api_key' | 'otel';
  author_id: string;
  /** Milliseconds since the epoch. */
  created_at: number;
}

/** Header of every JetStream message that names its schema. */
export const FINGERPRINT_HEADER = 'Schema-Fingerprint';
/**
 * Header of a dead letter that holds only the first part of its body, or none of it: the number of
 * bytes of the whole body.
 */
export const BODY_BYTES_HEADER = 'Body-Bytes';

export class UnknownSchemaError extends Error {}

export interface Codec<T> {
  /** First 16 hex characters of SHA-256 over the schema's canonical form. */
  readonly fingerprint: string;
  encode(value: T): Uint8Array;
  /**
   * Decodes a message.
   * @throws UnknownSchemaError when the fingerprint is another schema's; Error when the bytes are
   * not such a record
   */
  decode(bytes: Uint8Array, fingerprint: string | undefined): T;
}

function readSchema(file: string): { type: avsc.Type; fingerprint: string } {
  const schema = JSON.parse(readFileSync(new URL(file, import.meta.url), 'utf8')) as avsc.Schema;
  const type = avsc.Type.forSchema(schema);
  const canonical = JSON.stringify(type.schema());
  return { type, fingerprint: createHash('sha256').update(canonical).digest('hex').slice(0, 16) };
}

/**
 * @param older schemas of earlier versions, whose messages may still be in the log; fields that
 * they lack have their defaults
 */
function defineCodec<T>(file: string, older: readonly string[] = []): Codec<T> {
  const { type, fingerprint } = readSchema(file);
  const resolvers = new Map(
    older.map((name) => {
      const before = readSchema(name);
      return [before.fingerprint, type.createResolver(before.type)] as const;
    }),
  );
  return {
    fingerprint,
    encode: (value) => type.toBuffer(value),
    decode: (bytes, given) => {
      const resolver = given === fingerprint ? undefined : resolvers.get(given ?? '');
      if (given !== fingerprint && resolver === undefined)
        throw new UnknownSchemaError(`schema fingerprint ${given ?? '(none)'} is not ${fingerprint} (${file})`);
      return type.fromBuffer(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), resolver) as T;
    },
  };
}

export const ingestBatchCodec = defineCodec<{ events: IngestEvent[] }>('./ingest_batch.v2.avsc', [
  './ingest_batch.v1.avsc',
]);
export const costCorrectionsCodec = defineCodec<CostCorrections>('./cost_corrections.v1.avsc');
export const serviceEventsCodec = defineCodec<{ events: ServiceEvent[] }>('./service_events.v1.avsc');
export const deadLetterCodec = defineCodec<DeadLetter>('./dead_letter.v1.avsc');
export const auditEntryCodec = defineCodec<AuditEntry>('./audit_entry.v1.avsc');
export const mailCodec = defineCodec<Mail>('./mail.v1.avsc');
export const webhookDeliveryCodec = defineCodec<WebhookDelivery>('./webhook_delivery.v1.avsc');
export const judgingTaskCodec = defineCodec<JudgingTask>('./judging_task.v1.avsc');
export const userScoreCodec = defineCodec<UserScore>('./user_score.v1.avsc');
