// The row of a trace as the store returns it: its columns, and its conversion to the state of a
// trace.
import { usdToPico } from '../domain/pricing/money.ts';
import type { TraceOutcome } from '../domain/traces/span.ts';
import type { TraceState } from '../domain/traces/trace_state.ts';

/** The row of a trace, as read from the store. */
export interface StoredTrace {
  state: TraceState;
  /** log_seq of the newest message that the row includes. */
  version: number;
}

export const TRACE_COLUMNS = `org_id, trace_id, toUnixTimestamp64Milli(anchor) AS anchor_ms, toUnixTimestamp64Milli(started_at) AS started_ms, toUnixTimestamp64Milli(ended_at) AS ended_ms,
  toUnixTimestamp64Milli(root_at) AS root_ms, root_span_id, root_span_name, agent_id, outcome, session_id, user_id, tags, spans, input_tokens, output_tokens,
  toString(cost_usd) AS cost, sampled, forced_from, version`;

export interface TraceRecord {
  org_id: string;
  trace_id: string;
  anchor_ms: string;
  started_ms: string;
  ended_ms: string;
  root_ms: string | null;
  root_span_id: string;
  root_span_name: string;
  agent_id: string;
  outcome: TraceOutcome;
  session_id: string;
  user_id: string;
  tags: string[];
  spans: number;
  input_tokens: string;
  output_tokens: string;
  cost: string;
  sampled: boolean;
  forced_from: string;
  version: string;
}

/** Converts a row to what the trace book restores. */
export function storedTrace(row: TraceRecord): StoredTrace {
  return {
    version: Number(row.version),
    state: {
      org_id: row.org_id,
      trace_id: row.trace_id,
      anchor: Number(row.anchor_ms),
      started_at: Number(row.started_ms),
      ended_at: Number(row.ended_ms),
      root_at: row.root_ms === null ? null : Number(row.root_ms),
      root_span_id: row.root_span_id,
      root_span_name: row.root_span_name,
      agent_id: row.agent_id,
      outcome: row.outcome,
      session_id: row.session_id,
      user_id: row.user_id,
      tags: row.tags,
      spans: row.spans,
      input_tokens: Number(row.input_tokens),
      output_tokens: Number(row.output_tokens),
      cost_pico_usd: usdToPico(row.cost),
      sampled: row.sampled,
      forced_from: Number(row.forced_from),
    },
  };
}
