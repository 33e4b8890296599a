// Shape of the outline of a trace: the answer of GET /v1/traces/{trace_id}/outline. It holds every
// span without its texts, as columns of equal length, so that 50,000 spans are one small answer.

export const KINDS = ['llm', 'tool', 'event', 'app'] as const;
/** Kinds as the screen shows them: a model call that a judge made is told apart from the others. */
export const SHOWN_KINDS = [...KINDS, 'judge'] as const;
export type ShownKind = (typeof SHOWN_KINDS)[number];

export const OUTCOMES = ['success', 'error', 'timeout'] as const;
export type Outcome = (typeof OUTCOMES)[number];

export interface OutlineTrace {
  trace_id: string;
  root_span_name: string | null;
  agent_id: string | null;
  outcome: Outcome;
  duration_ms: number;
  input_tokens: number;
  output_tokens: number;
  cost_usd: number;
  started_at: string;
  ended_at: string;
  tags: readonly string[];
  span_count: number;
  session_id: string | null;
  user_id: string | null;
}

export interface OutlineScore {
  span_id: string | null;
  name: string;
  value: number | string | boolean | null;
  verdict: string | null;
  source: string;
}

export interface OutlineColumns {
  span_id: readonly string[];
  /** Index of the parent in these columns; -1 for a span whose parent is not here. */
  parent: readonly number[];
  /** Index in `names`. */
  name: readonly number[];
  kind: readonly string[];
  /** Index in `models`; -1 for a span without a model. */
  model: readonly number[];
  outcome: readonly string[];
  /** Milliseconds from the start of the trace. */
  start_ms: readonly number[];
  duration_ms: readonly number[];
  /** Milliseconds from the start of the span to its first token; -1 if unknown. */
  first_token_ms: readonly number[];
  input_tokens: readonly number[];
  output_tokens: readonly number[];
  cost_usd: readonly number[];
  flags: readonly number[];
}

export interface Outline {
  trace: OutlineTrace;
  /** False while spans may still arrive. */
  complete: boolean;
  sampled: boolean;
  names: readonly string[];
  models: readonly string[];
  errors: readonly { i: number; message: string }[];
  scores: readonly OutlineScore[];
  spans: OutlineColumns;
}
