// The canonical records of the data plane. Names are the same from wire to column; times are
// milliseconds since the epoch; money is an exact integer of pico-USD (1e-12 USD), so that sums
// never depend on their order.
import type { SourceFormat } from '../../../schemas/codec.ts';

export type SpanKind = 'llm' | 'tool' | 'event' | 'app';
export type TraceOutcome = 'success' | 'error' | 'timeout';

/**
 * The price that a span's cost was computed from. Prices are USD per million tokens; null where
 * they did not enter it.
 */
export interface SpanPrice {
  /**
   * `given` (attributes.cost_usd), `org` (the organization's own prices),
   * `<package>@<version>:<provider>/<model>`, or `missing`.
   */
  source: string;
  input_usd_per_mtok: number | null;
  output_usd_per_mtok: number | null;
  cached_input_usd_per_mtok: number | null;
}

/** One row of the spans table, and of the texts tables when it has a prompt or a response. */
export interface Span {
  org_id: string;
  trace_id: string;
  span_id: string;
  /** Empty for a root. */
  parent_span_id: string;
  /** hex16 of the event that it came from; a chain's children share their event's. */
  event_hex: string;
  started_at: number;
  ended_at: number;
  received_at: number;
  kind: SpanKind;
  name: string;
  model: string;
  /** Vendor that answered a model call; empty where unknown. */
  provider: string;
  source_format: SourceFormat;
  outcome: TraceOutcome;
  agent_id: string;
  department: string;
  realm: string;
  /** Deployment environment, service and its version, as the sender names them. */
  environment: string;
  service: string;
  release: string;
  /** Registered prompt that a call used, and its version. */
  prompt_name: string;
  prompt_version: string;
  session_id: string;
  user_id: string;
  tags: string[];
  input_tokens: number;
  output_tokens: number;
  cached_input_tokens: number;
  /** Milliseconds from the start to the first token; 0 where unknown. */
  first_token_ms: number;
  /** Tokens of input_tokens that the provider wrote to its cache. */
  cache_write_tokens: number;
  /** Tokens of output_tokens that the model spent on reasoning. */
  reasoning_tokens: number;
  cost_pico_usd: bigint;
  price: SpanPrice;
  attributes: Record<string, unknown>;
  prompt: string;
  response: string;
  /** Bytes of the event's body; 0 on a chain's children, so that an event is metered once. */
  storage_bytes: number;
  sandbox_seconds: number;
  /**
   * Set on log records: `message` holds messages of its parent, `line` a text that is neither asked of
   * a model nor answered by one.
   */
  record?: 'message' | 'line';
  /** The vendor's ids of a model call whose attributes are not stored. */
  call_ids?: readonly string[];
  /** Id of the span that counts the same model call; set on a span that does not count it again. */
  duplicate_of?: string;
  /** Ids of the spans in whose place this span counts their model call. */
  replaces?: readonly string[];
  /**
   * Kinds of personal data that were redacted in it, and labels of own patterns; absent when there
   * were none.
   */
  redacted?: readonly string[];
}
