// When the mean of an eval has dropped: which eval it is held against, and what is told. Pure.
import type { EvalRecord } from '../../../schemas/records/eval.ts';

/** Means are sums of binary fractions: 0.7 - 0.2 is a little under 0.5, and a drop of 0.5 all the same. */
const ROUNDING = 1e-9;

/**
 * The newest complete eval of the same judge that ended before, over stored traces or over the same dataset as this one.
 * @param all evals of any org and judge
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

/** Whether two evals judge the same kind of thing: stored traces, or the same items of the same dataset. */
export function isSameSubject(a: Pick<EvalRecord, 'dataset'>, b: Pick<EvalRecord, 'dataset'>): boolean {
  if (a.dataset?.dataset_id !== b.dataset?.dataset_id) return false;
  const [one, other] = [a.dataset?.digest, b.dataset?.digest];
  // Records of before the digest was kept name none: datasets could not be made again then.
  return one === undefined || other === undefined || one === other;
}

export interface RegressionEvent {
  /** evt_ and the eval's hex digits: the same whenever it is told. */
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
 * What is told of a complete eval; null where its mean has not dropped by the threshold.
 * @param threshold the org's policy: regression_drop, in scores
 */
export function regressionOf(
  { org_id, eval_id, judge_id, status, stats, previous }: EvalRecord,
  threshold: number,
): RegressionEvent | null {
  const current_mean = stats?.mean_score ?? null;
  if (status !== 'complete' || previous === null || current_mean === null) return null;
  const drop = previous.mean_score - current_mean;
  // An org that sets 0 is told of every drop, not of evals that are as good as the one before.
  if (drop <= ROUNDING || drop < threshold - ROUNDING) return null;
  return {
    event_id: `evt_${eval_id.slice('eval_'.length)}`,
    event: 'judge.regression',
    org_id,
    payload: { event: 'judge.regression', judge_id, previous_mean: previous.mean_score, current_mean, drop, threshold },
  };
}
