// Detects a drop of an eval's mean score: selects the eval to compare with, and builds the event.
// Pure.
import type { EvalRecord } from '../../../schemas/records/eval.ts';

/**
 * Means are sums of binary fractions: 0.7 - 0.2 is a little under 0.5 and still counts as a drop of
 * 0.5.
 */
const ROUNDING = 1e-9;

/**
 * Returns the newest complete eval of the same judge that ended before this one and judged the same
 * subject: stored traces, or the same dataset.
 * @param all evals of any organization and judge
 */
export function previousEval(all: Iterable<EvalRecord>, current: EvalRecord, ended_at: string): EvalRecord['previous'] {
  let newest: { ended_at: string; eval_id: string; mean_score: number } | null = null;
  for (const one of all) {
    if (one.org_id !== current.org_id || one.judge_id !== current.judge_id || one.eval_id === current.eval_id) continue;
    if (!isSameSubject(one, current)) continue;
    const mean_score = one.stats?.mean_score ?? null;
    if (one.status !== 'complete' || one.ended_at === null || mean_score === null || one.ended_at > ended_at) continue;
    if (
      newest === null ||
      one.ended_at > newest.ended_at ||
      (one.ended_at === newest.ended_at && one.eval_id > newest.eval_id)
    )
      newest = { ended_at: one.ended_at, eval_id: one.eval_id, mean_score };
  }
  return newest === null ? null : { eval_id: newest.eval_id, mean_score: newest.mean_score };
}

/**
 * Returns true when two evals judge the same subject: stored traces, or the same items of the same
 * dataset.
 */
export function isSameSubject(a: Pick<EvalRecord, 'dataset'>, b: Pick<EvalRecord, 'dataset'>): boolean {
  if (a.dataset?.dataset_id !== b.dataset?.dataset_id) return false;
  const [one, other] = [a.dataset?.digest, b.dataset?.digest];
  // Records without a digest predate it; at that time a dataset could not be made again under the
  // same id.
  return one === undefined || other === undefined || one === other;
}

export interface RegressionEvent {
  /** evt_ and the eval's hex digits: identical each time the event is sent. */
  event_id: string;
  event: 'judge.regression';
  org_id: string;
  payload: {
    event: 'judge.regression';
    judge_id: string;
    previous_mean: number;
    current_mean: number;
    drop: number;
    threshold: number;
  };
}

/**
 * Returns the event of a complete eval; null when its mean has not dropped by the threshold.
 * @param threshold the organization's policy `regression_drop`, in scores
 */
export function regressionOf(
  { org_id, eval_id, judge_id, status, stats, previous }: EvalRecord,
  threshold: number,
): RegressionEvent | null {
  const current_mean = stats?.mean_score ?? null;
  if (status !== 'complete' || previous === null || current_mean === null) return null;
  const drop = previous.mean_score - current_mean;
  // With a threshold of 0, every drop is reported, but not an eval that equals the one before.
  if (drop <= ROUNDING || drop < threshold - ROUNDING) return null;
  return {
    event_id: `evt_${eval_id.slice('eval_'.length)}`,
    event: 'judge.regression',
    org_id,
    payload: { event: 'judge.regression', judge_id, previous_mean: previous.mean_score, current_mean, drop, threshold },
  };
}
