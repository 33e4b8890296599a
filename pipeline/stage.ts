// The contract of a stage, as types.
//
// A stage takes a batch in log order and returns exactly one outcome for each input, in the same
// order. It does no I/O beyond what it was constructed with; only the worker reads the log, lands
// rows and moves the checkpoint.
import type { SourceFormat } from '../schemas/codec.ts';
import type { Outcomes } from './domain/pricing/outcomes.ts';
import type { Span } from './domain/traces/span.ts';

export type StageName = 'decode' | 'dedupe' | 'match' | 'sample' | 'meter';
/**
 * Name of a step of a batch in metrics and dead letters: a stage, or one of the two steps after the
 * stages. `score` judges the traces that the batch completes; `land` writes its rows to the store.
 */
export type StepName = StageName | 'score' | 'land';
export type DropReason = 'duplicate';
export type DeadReason =
  'unknown_schema' | 'unreadable_message' | 'decode_failed' | 'refused_by_store' | 'internal_error';

/**
 * `emit` passes the output to the next stage. `drop` discards the input on purpose, and is counted.
 * `dead` marks an input that can never be processed and goes to DEAD_LETTERS.
 */
export type Outcome<Out> =
  | { kind: 'emit'; out: Out }
  | { kind: 'drop'; reason: DropReason }
  | { kind: 'dead'; reason: DeadReason; detail: string };

export interface Stage<In, Out> {
  readonly name: StageName;
  /**
   * Does the I/O that `run` needs for this batch. The runner awaits it before `run`, and retries
   * with backoff when it rejects.
   */
  prefetch?(batch: readonly In[]): Promise<void>;
  run(batch: readonly In[]): readonly Outcome<Out>[];
}

/** Position of an event in the ingest log. */
export interface LogPosition {
  partition: number;
  /** Sequence of the JetStream message, plus the store's log base. */
  log_seq: number;
  /** Index of the event in that message. */
  log_index: number;
}

/** One event of the log: the input of decode. */
export interface LoggedEvent extends LogPosition {
  org_id: string;
  format: SourceFormat;
  event_hex: string;
  trace_id: string;
  received_at: number;
  body: string;
  /** API key that sent the event; empty for none. */
  key_id?: string;
  label_user_id?: string;
  label_department?: string;
  /** True for an event of the past; see IngestEvent. */
  backfill?: boolean;
}

/**
 * An event with its spans: the output of decode. The event's own span comes first; a chain also has
 * a span for each step.
 */
export interface DecodedEvent extends LogPosition {
  org_id: string;
  trace_id: string;
  event_hex: string;
  received_at: number;
  /** API key that sent the event; empty for none. */
  key_id?: string;
  backfill?: boolean;
  spans: Span[];
  /** Records of the same model call that counted until this event, which counts in their place. */
  replaced?: readonly CountedCall[];
}

/** A record of a model call that counts, as later records of the same call need it. */
export interface CountedCall {
  span_id: string;
  /** Gateway, instrumentation or agent that made the record. */
  source: string;
  /** What its event counts, without storage. */
  usage: Usage;
}

/**
 * How much of an event is stored: all of it, or a summary row without prompt, response and
 * attributes.
 */
export type Retain = 'full' | 'summary';

export interface SampledEvent extends DecodedEvent {
  retain: Retain;
  /** The keep rule that applied, or `profile` if the sampling rate decided. */
  sample_reason: string;
}

/** What one event used. Sampling does not change it. */
export interface Usage {
  org_id: string;
  agent_id: string;
  /** API key that sent the events; empty for none. */
  key_id: string;
  /** Start of the hour of received_at, or for an event of the past of its start, in milliseconds. */
  hour: number;
  /**
   * UTC day on which the event's own span started, in days since the epoch. The cost of the event
   * counts on this day.
   */
  day: number;
  /** Model of the event's own span, as are department and realm; empty if there is none. */
  model: string;
  department: string;
  realm: string;
  /** received_at of the newest event counted here, in milliseconds. */
  last_received_at: number;
  events: number;
  input_tokens: number;
  output_tokens: number;
  storage_bytes: number;
  sandbox_micros: bigint;
  cost_pico_usd: bigint;
  outcomes: Outcomes;
  /** Id of the message that corrected costs, as a number; 0 for the use of events. */
  correction: bigint;
}

export interface MeteredEvent extends SampledEvent {
  usage: Usage;
}
