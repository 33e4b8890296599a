// Builds the score rows of an eval from what was judged, the judge and its judgement. Pure.
import type { EvalRecord } from '../../schemas/records/eval.ts';
import { type JudgeRecord, verdictOf } from '../../schemas/records/judge.ts';
import type { ScoreRow } from '../../sql/stores/judge_scores.ts';
import type { JudgedTrace } from '../domain/judging/judged_trace.ts';

const REASON_CHARS_MAX = 4000;

/** Judgement of one trace; the score is null when the judge failed. */
export interface Judgement {
  score: number | null;
  reason: string;
  /** True when the upstream rejected the call: calls for other traces will fail in the same way. */
  refused?: boolean;
}

/** Fields of a trace that a row holds. */
export type Judged = Pick<JudgedTrace, 'trace_id' | 'agent_id' | 'started_at'>;

export function scoreRow(
  { org_id, eval_id }: EvalRecord,
  judge: JudgeRecord,
  { trace_id, agent_id, started_at }: Judged,
  { score, reason }: Judgement,
  { item_index = 0, now }: { item_index?: number; now: number },
): ScoreRow {
  return {
    org_id,
    judge_id: judge.judge_id,
    judge_version: judge.version,
    judge_name: judge.name,
    eval_id,
    trace_id,
    agent_id,
    started_ms: started_at,
    item_index,
    score,
    verdict: score === null ? 'error' : verdictOf(score, judge.threshold),
    reason: reason.slice(0, REASON_CHARS_MAX).toWellFormed(),
    scored_ms: now,
  };
}
