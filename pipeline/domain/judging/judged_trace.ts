// What judges see of a trace: one input, one output, and the sums of its spans. The prompt is the
// root's, else that of the earliest model call, else of the earliest span with a prompt. The
// response is the root's, else that of the model call that ended last, else of the last-ended span
// with a response.
import type { TraceOutcome } from '../traces/span.ts';

export interface JudgedTrace {
  org_id: string;
  trace_id: string;
  agent_id: string;
  /** Name of the root span; empty while the root is missing. */
  name: string;
  /** Model of the span that gave the response; empty when no model was called. */
  model: string;
  outcome: TraceOutcome;
  /** Source format of the root, else of the first span. */
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
  /** Attributes of the root, else of the first span. */
  attributes: Readonly<Record<string, unknown>>;
}
