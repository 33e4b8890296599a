import { describe, expect, it } from 'vitest';
import { previousEval, regressionOf } from '../../../pipeline/domain/evals/regression.ts';
import type { EvalRecord } from '../../../schemas/records/eval.ts';

const anEval = (
  eval_id: string,
  over: Partial<EvalRecord> & { mean?: number | null; at?: number } = {},
): EvalRecord => {
  const { mean = 1, at = 0, ...rest } = over;
  return {
    org_id: 'org_a',
    eval_id: `eval_${eval_id}`,
    judge_id: 'judge_a',
    judge_version: 1,
    dataset: null,
    calls_model: false,
    status: 'complete',
    progress: { total: 1, chunk_size: 100, next_chunk: 1, open: [] },
    started_at: new Date(at).toISOString(),
    ended_at: new Date(at).toISOString(),
    error: null,
    stats: { total: 1, passed: 1, warned: 0, failed: 0, errors: 0, mean_score: mean, p50_score: mean },
    previous: null,
    settled: false,
    ...rest,
  };
};
const run = (dataset_id: string): EvalRecord['dataset'] => ({ dataset_id, prompt_version: null, model: 'm' });
const ended = new Date(100).toISOString();

describe('the eval that one is held against', () => {
  const current = anEval('now', { at: 100 });

  it('an eval is compared with the newest complete one of the same judge that has a mean', () => {
    const all = [
      anEval('old', { at: 10, mean: 0.1 }),
      anEval('newest', { at: 50, mean: 0.2 }),
      anEval('without a score', { at: 60, mean: null }),
      anEval('failed', { at: 70, status: 'failed' }),
      anEval('running', { at: 0, status: 'running', ended_at: null, stats: null }),
      anEval('of another judge', { at: 80, judge_id: 'judge_b' }),
      anEval('of another org', { at: 80, org_id: 'org_b' }),
      anEval('of a dataset', { at: 80, dataset: run('ds_a') }),
      anEval('later', { at: 101 }),
      current,
    ];
    expect(previousEval(all, current, ended)).toEqual({ eval_id: 'eval_newest', mean_score: 0.2 });
    expect(previousEval([current], current, ended)).toBeNull();
  });

  it('a dataset run is compared with a run of the same dataset', () => {
    const all = [
      anEval('plain', { at: 90 }),
      anEval('other', { at: 90, dataset: run('ds_b') }),
      anEval('same', { at: 5, dataset: run('ds_a') }),
    ];
    expect(previousEval(all, anEval('now', { at: 100, dataset: run('ds_a') }), ended)?.eval_id).toBe('eval_same');
  });
});

describe('a regression', () => {
  const against = (before: number, now: number, threshold: number) =>
    regressionOf(
      anEval('0123456789abcdef', { mean: now, previous: { eval_id: 'eval_before', mean_score: before } }),
      threshold,
    );

  it.each([
    [0.7, 0.2, 0.5, true],
    [0.8, 0.3, 0.5, true],
    [1, 0.5, 0.5, true],
    [1, 0.5000001, 0.5, false],
    [4.2, 3.6, 0.5, true],
    [0.5, 1, 0.5, false],
    [0.9, 0.89, 0, true],
    [0.9, 0.9, 0, false],
    [0.3, 0.1 + 0.2, 0, false],
  ])('a mean that goes from %d to %d with a threshold of %d is a regression: %s', (before, now, threshold, told) => {
    expect(against(before, now, threshold) !== null).toBe(told);
  });

  it('a regression is sent under the id of its eval, with the fields of the catalog', () => {
    expect(against(1, 0.25, 0.5)).toEqual({
      event_id: 'evt_0123456789abcdef',
      event: 'judge.regression',
      org_id: 'org_a',
      payload: {
        event: 'judge.regression',
        judge_id: 'judge_a',
        previous_mean: 1,
        current_mean: 0.25,
        drop: 0.75,
        threshold: 0.5,
      },
    });
  });

  it('there is no regression without an earlier eval, without a mean, or when the eval failed', () => {
    expect(regressionOf(anEval('a'), 0.5)).toBeNull();
    expect(regressionOf(anEval('a', { mean: null, previous: { eval_id: 'eval_b', mean_score: 1 } }), 0.5)).toBeNull();
    expect(
      regressionOf(anEval('a', { mean: 0, status: 'failed', previous: { eval_id: 'eval_b', mean_score: 1 } }), 0.5),
    ).toBeNull();
  });
});
