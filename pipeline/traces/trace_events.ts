// The platform events of a trace: trace.started and trace.completed, with their payloads.
import { durationMs, type TraceState } from '../domain/traces/trace_state.ts';
import type { CompleteTrace } from '../judging/rule_inputs.ts';

/** A platform event about a trace. The trace book, judging and the PII samples make them. */
export interface TraceEvent {
  event: 'trace.started' | 'trace.completed' | 'judge.threshold_breach' | 'pii.match';
  org_id: string;
  trace_id: string;
  /** Distinguishes events of the same kind and trace; left out if there is only one. */
  subject?: string;
  payload: Readonly<Record<string, unknown>>;
  /** For trace.completed, what judges may look at; left out if no judge is to see it. */
  complete?: CompleteTrace;
}

export function started(state: TraceState): TraceEvent {
  return {
    event: 'trace.started',
    org_id: state.org_id,
    trace_id: state.trace_id,
    payload: {
      event: 'trace.started',
      trace_id: state.trace_id,
      agent_id: state.agent_id === '' ? null : state.agent_id,
      started_at: new Date(state.started_at).toISOString(),
      org_id: state.org_id,
    },
  };
}

export function completed(state: TraceState): TraceEvent {
  return {
    event: 'trace.completed',
    org_id: state.org_id,
    trace_id: state.trace_id,
    payload: {
      event: 'trace.completed',
      trace_id: state.trace_id,
      outcome: state.outcome,
      duration_ms: durationMs(state),
      input_tokens: state.input_tokens,
      output_tokens: state.output_tokens,
      cost_usd: Number(state.cost_pico_usd) / 1e12,
      judge_scores: {},
    },
  };
}
