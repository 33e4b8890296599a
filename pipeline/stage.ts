// The contract of a stage: types only.
// A stage gets a batch in log order and gives exactly one outcome for each input, in the same order. It does no I/O of
// its own beyond what it was constructed with; the runner alone reads the log, lands rows and moves the checkpoint.
import type { SourceFormat } from '../schemas/codec.ts';
import type { Outcomes } from './domain/pricing/outcomes.ts';
import type { Span } from './domain/traces/span.ts';

export type StageName = 'decode' | 'dedupe' | 'sample' | 'meter';
/**
 * What metrics and dead letters call a step of a batch: a stage, or one of the two steps after the stages, which are not
 * stages. `score` judges the traces that the batch completes; `land` writes its rows to the store.
 */
export type StepName = StageName | 'score' | 'land';
export type DropReason = 'duplicate';
export type DeadReason =
  'unknown_schema' | 'unreadable_message' | 'decode_failed' | 'refused_by_store' | 'internal_error';

/** emit: go on. drop: on purpose, counted. dead: can never work, kept in DEAD_LETTERS. */
export type Outcome<Out> =
  | { kind: 'emit'; out: Out }
  | { kind: 'drop'; reason: DropReason }
  | { kind: 'dead'; reason: DeadReason; detail: string };

export interface Stage<In, Out> {
  readonly name: StageName;
  /** I/O that run needs for this batch. The runner awaits it first, and tries the batch again later when it rejects. */
  prefetch?(batch: readonly In[]): Promise<void>;
  run(batch: readonly In[]): readonly Outcome<Out>[];
}

/** Where an event stands in the log. */
export interface LogPosition {
  partition: number;
  /** Sequence of the JetStream message. */
  log_seq: number;
  /** Index of the event in that message. */
  log_index: number;
}

/** What decode takes: one event of the log. */
export interface LoggedEvent extends LogPosition {
  org_id: string;
  format: SourceFormat;
  event_hex: string;
  trace_id: string;
  received_at: number;
  body: string;
}

/** What decode gives: the event's spans (one; a chain also has a child for each step), the event's own span first. */
export interface DecodedEvent extends LogPosition {
  org_id: string;
  trace_id: string;
  event_hex: string;
  received_at: number;
  spans: Span[];
}

/** How much of an event is stored: full, or a summary row without prompt, response and attributes. */
export type Retain = 'full' | 'summary';

export interface SampledEvent extends DecodedEvent {
  retain: Retain;
  /** The keep rule that held it, or `profile` where the rate decided. */
  sample_reason: string;
}

/** What one event used, whatever sampling said. */
export interface Usage {
  org_id: string;
  agent_id: string;
  /** Start of the hour of received_at, milliseconds. */
  hour: number;
  /** The day (UTC) on which the event's own span started, in days since the epoch: its cost counts there. */
  day: number;
  /** Of the event's own span, as are department and realm; empty for none. */
  model: string;
  department: string;
  realm: string;
  /** When the newest event in it was received, milliseconds. */
  last_received_at: number;
  events: number;
  input_tokens: number;
  output_tokens: number;
  storage_bytes: number;
  sandbox_micros: bigint;
  cost_pico_usd: bigint;
  outcomes: Outcomes;
  /** The message that corrected costs, as a number; 0 for what events used. */
  correction: bigint;
}

export interface MeteredEvent extends SampledEvent {
  usage: Usage;
}
