// What judges see of a trace: one input and one output, and the sums of its spans.
// The prompt is the root's, else that of the earliest model call, else of the earliest span that has one; the response is the root's, else
// that of the model call that ended last, else of the span that ended last and has one.
import type { TraceOutcome } from '../traces/span.ts';

export interface JudgedTrace {
  org_id: string;
  trace_id: string;
  agent_id: string;
  /** Name of the root span; empty while no root has come. */
  name: string;
  /** Model of the span that gave the response; empty where none was called. */
  model: string;
  outcome: TraceOutcome;
  /** Of the root, else of the first span. */
  source_format: string;
  tags: readonly string[];
  /** First start, milliseconds since the epoch. */
  started_at: number;
  duration_ms: number;
  input_tokens: number;
  output_tokens: number;
  cost_usd: number;
  prompt: string;
  response: string;
  /** The root's, else those of the first span. */
  attributes: Readonly<Record<string, unknown>>;
}
