// Converts the row of a trace, as the store returns it, to the state of a trace.
import { usdToPico } from '../domain/pricing/money.ts';
import type { TraceState } from '../domain/traces/trace_state.ts';
import type { TraceRow } from '../../sql/stores/partition_rows.ts';

/** The row of a trace, as read from the store. */
export interface StoredTrace {
  state: TraceState;
  /** log_seq of the newest message that the row includes. */
  version: number;
}

/** Converts a row to what the trace book restores. */
export function storedTrace(row: TraceRow): StoredTrace {
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
      described: row.described,
      models: row.models,
      source_formats: row.source_formats,
      departments: row.departments,
      realms: row.realms,
      prompts: row.prompts,
      backfilled: row.backfilled,
    },
  };
}
