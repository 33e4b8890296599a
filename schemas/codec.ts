// Avro codecs of everything that crosses a process boundary on JetStream.
// Each message names its schema by fingerprint in the header Schema-Fingerprint, so that a reader can refuse what it
// does not know instead of misreading it.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import avsc from 'avsc';
import type { AuditActor, AuditTarget } from './records/audit.ts';

export type SourceFormat = 'chatcompletion' | 'messages' | 'chain' | 'custom' | 'app' | 'otlp' | 'gateway';

/** One accepted event as it stands in the ingest log. */
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
}

/** One platform event (trace.started, …) on its way to webhooks and mail. */
export interface ServiceEvent {
  event_id: string;
  event: string;
  org_id: string;
  /** Milliseconds since the epoch. */
  created_at: number;
  /** JSON object with the payload fields of the event catalog. */
  payload: string;
}

/** What spans of one partition have cost, corrected. */
export interface CostCorrections {
  /** hex16: the same however often the message is sent, and no other message's. */
  correction_hex: string;
  org_id: string;
  changes: CostChange[];
}

/** What is added to the cost of a trace, and to what was used in an hour and on a day. */
export interface CostChange {
  trace_id: string;
  /** Start of the hour (UTC) in which the events were received, milliseconds. */
  hour: number;
  /** Day (UTC) on which they began, days since the epoch. */
  day: number;
  agent_id: string;
  model: string;
  department: string;
  realm: string;
  /** Decimal text; negative where it was too much. */
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

/** One half of a mutation's record: that it is about to happen, or how it ended. */
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
  /** Milliseconds since the epoch, of the intent; the same in both. */
  created_at: number;
}

/** One mail on its way out, as plain text. */
export interface Mail {
  /** The same for every try. */
  mail_id: string;
  org_id: string;
  /** One address. */
  to: string;
  subject: string;
  text: string;
  /** Part of the text that no log may show; empty where there is none. */
  secret: string;
  /** Milliseconds since the epoch. */
  created_at: number;
}

/** One platform event on its way to one receiver. */
export interface WebhookDelivery {
  /** The same for every try. */
  event_id: string;
  event: string;
  org_id: string;
  target_kind: 'endpoint' | 'alert';
  target_id: string;
  /** The JSON that is signed and sent, to the byte. */
  body: string;
  /** Of the event, milliseconds since the epoch. */
  created_at: number;
  /** Tries that have failed before. */
  attempt: number;
  /** Milliseconds since the epoch; 0 before the first try. */
  first_attempt_at: number;
  /** When the next try is due, milliseconds since the epoch; 0 for at once. */
  not_before: number;
}

/** Slow judging to do: a live trace by one LLM judge, or a chunk of an eval or dataset run. */
export interface JudgingTask {
  /** The same however often it is sent. */
  task_id: string;
  kind: 'live' | 'eval' | 'dataset';
  org_id: string;
  judge_id: string;
  judge_version: number;
  /** Agent of a live trace; empty for none. */
  agent_id: string;
  /** Empty for live. */
  eval_id: string;
  /** Which part of the eval; 0 for live. */
  chunk: number;
  /** Of a live task, the one trace; else of the chunk, unless the eval's record names them. */
  trace_ids: string[];
  /** Milliseconds since the epoch. */
  created_at: number;
}

/** What a person or an application says of a trace or a span. */
export interface UserScore {
  score_id: string;
  org_id: string;
  trace_id: string;
  /** Empty for the trace as a whole. */
  span_id: string;
  /** Milliseconds since the epoch. */
  trace_started_at: number;
  name: string;
  data_type: 'numeric' | 'boolean' | 'categorical';
  /** Of a boolean 1 or 0; null for categories. */
  number: number | null;
  /** Of a category; empty otherwise. */
  text: string;
  comment: string;
  author_type: 'user' | 'api_key';
  author_id: string;
  /** Milliseconds since the epoch. */
  created_at: number;
}

/** Header of every JetStream message of ours. */
export const FINGERPRINT_HEADER = 'Schema-Fingerprint';
/** Header of a dead letter that holds the first part of its body only, or nothing of it: the bytes of the whole. */
export const BODY_BYTES_HEADER = 'Body-Bytes';

export class UnknownSchemaError extends Error {}

export interface Codec<T> {
  /** First 16 hex characters of SHA-256 over the schema's canonical form. */
  readonly fingerprint: string;
  encode(value: T): Uint8Array;
  /**
   * Reads a message.
   * @throws UnknownSchemaError when the fingerprint is another schema's; Error when the bytes are no such record.
   */
  decode(bytes: Uint8Array, fingerprint: string | undefined): T;
}

function defineCodec<T>(file: string): Codec<T> {
  const schema = JSON.parse(readFileSync(new URL(file, import.meta.url), 'utf8')) as avsc.Schema;
  const type = avsc.Type.forSchema(schema);
  const canonical = JSON.stringify(type.schema());
  const fingerprint = createHash('sha256').update(canonical).digest('hex').slice(0, 16);
  return {
    fingerprint,
    encode: (value) => type.toBuffer(value),
    decode: (bytes, given) => {
      if (given !== fingerprint)
        throw new UnknownSchemaError(`schema fingerprint ${given ?? '(none)'} is not ${fingerprint} (${file})`);
      return type.fromBuffer(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)) as T;
    },
  };
}

export const ingestBatchCodec = defineCodec<{ events: IngestEvent[] }>('./ingest_batch.v1.avsc');
export const costCorrectionsCodec = defineCodec<CostCorrections>('./cost_corrections.v1.avsc');
export const serviceEventsCodec = defineCodec<{ events: ServiceEvent[] }>('./service_events.v1.avsc');
export const deadLetterCodec = defineCodec<DeadLetter>('./dead_letter.v1.avsc');
export const auditEntryCodec = defineCodec<AuditEntry>('./audit_entry.v1.avsc');
export const mailCodec = defineCodec<Mail>('./mail.v1.avsc');
export const webhookDeliveryCodec = defineCodec<WebhookDelivery>('./webhook_delivery.v1.avsc');
export const judgingTaskCodec = defineCodec<JudgingTask>('./judging_task.v1.avsc');
export const userScoreCodec = defineCodec<UserScore>('./user_score.v1.avsc');
