// Adapts LLM judges to evals: it returns a function that judges one trace of an eval, or ends the
// eval where no judgement is possible (quota used up, no upstream).
import { JudgeQuotaExceeded } from '../../ops/exchange/judge_quota.ts';
import type { EvalRecord } from '../../schemas/records/eval.ts';
import type { JudgeRecord } from '../../schemas/records/judge.ts';
import type { LlmJudges } from '../judging/llm_judges.ts';
import { EvalFailed } from './records.ts';
import type { JudgeTrace } from './score_traces.ts';

/**
 * Returns the judge for one eval.
 * @throws EvalFailed when the worker has no upstream
 */
export function llmJudgeOf(
  judges: Pick<LlmJudges, 'judge'> | null,
  { eval_id }: EvalRecord,
  judge: JudgeRecord,
): JudgeTrace {
  if (judges === null) throw new EvalFailed('its judge calls a model, and this service has no upstream for models');
  return async (trace, signal, { item_index = 0, ...item } = {}) => {
    try {
      return await judges.judge(judge, trace, { eval_id, item_index, ...item }, signal);
    } catch (error) {
      throw error instanceof JudgeQuotaExceeded
        ? new EvalFailed(`judge_quota_exceeded: ${error.message}`, { cause: error })
        : error;
    }
  };
}
