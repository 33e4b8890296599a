// Says what an eval over stored traces would judge and cost, without starting it. Model calls are
// priced by a sample of the traces, spread evenly over them, and multiplied.
import type { JudgeRecord } from '../../../schemas/records/judge.ts';
import { type EvalsDeps, judgeFor, tracesOf } from './evals.ts';
import type { EstimateEvalBody, EvalEstimate } from './schema.ts';

/** Traces whose texts are read for the price. */
const PRICED_TRACES_MAX = 20;

/** Model calls for some traces, and their tokens and cost. */
interface JudgingPrice {
  /** Traces that the store has. */
  found: number;
  input_tokens: number;
  output_tokens: number;
  /** null when no price of the model is known. */
  cost_usd: number | null;
}

export interface EstimateDeps extends EvalsDeps {
  /** Prices the judgements of a few traces. @throws ApiError upstream_unavailable, rate_limited */
  priceOf: (
    org_id: string,
    judge: JudgeRecord,
    trace_ids: readonly string[],
    signal: AbortSignal,
  ) => Promise<JudgingPrice>;
}

/**
 * Serves POST /v1/evals/estimate.
 *
 * @throws ApiError judge_not_found, trace_not_found, cross_org_access, judge_quota_exceeded,
 * rate_limited, upstream_unavailable
 */
export async function estimateEval(
  deps: EstimateDeps,
  org_id: string,
  body: EstimateEvalBody,
  signal: AbortSignal,
): Promise<EvalEstimate> {
  const judge = await judgeFor(deps, org_id, body.judge_id);
  const trace_ids = await tracesOf(deps, org_id, body, signal);
  const queued_traces = trace_ids.length;
  const which = { judge_id: judge.judge_id, judge_version: judge.version, queued_traces };
  if (judge.kind === 'deterministic' || queued_traces === 0)
    return { ...which, calls: 0, input_tokens: 0, output_tokens: 0, cost_usd: 0 };
  const price = await deps.priceOf(org_id, judge, spread(trace_ids), signal);
  const times = price.found === 0 ? 0 : queued_traces / price.found;
  return {
    ...which,
    calls: queued_traces,
    input_tokens: Math.round(price.input_tokens * times),
    output_tokens: Math.round(price.output_tokens * times),
    cost_usd: price.cost_usd === null ? null : price.cost_usd * times,
  };
}

/** Returns at most PRICED_TRACES_MAX of the ids, spread evenly over them. */
function spread(trace_ids: readonly string[]): string[] {
  const count = Math.min(PRICED_TRACES_MAX, trace_ids.length);
  return Array.from({ length: count }, (_, at) => trace_ids[Math.floor((at * trace_ids.length) / count)] ?? '');
}
