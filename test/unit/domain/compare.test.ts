import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import '../../support/properties.ts';
import {
  COMPARE_FIELDS,
  type ComparedTrace,
  compareTraces,
  DEFAULT_FIELDS,
  difference,
  isCompareField,
} from '../../../pipeline/domain/traces/compare.ts';

const aTrace = (over: Partial<ComparedTrace> = {}): ComparedTrace => ({
  duration_ms: 1000,
  cost_usd: 0.1,
  input_tokens: 100,
  output_tokens: 50,
  spans: 3,
  outcome: 'success',
  agent_id: 'bot',
  root_span_name: 'answer',
  models: ['a', 'b'],
  tags: [],
  prompt: null,
  response: null,
  scores: [],
  ...over,
});
const one = (field: string, baseline: Partial<ComparedTrace>, candidate: Partial<ComparedTrace>, threshold = 10) =>
  compareTraces(aTrace(baseline), aTrace(candidate), [field], threshold)[0];
const amount = fc.oneof(fc.integer({ min: 0, max: 1_000_000_000 }), fc.double({ min: 0, max: 1e6, noNaN: true }));
const threshold = fc.integer({ min: 0, max: 1000 });

describe('numbers', () => {
  it('numbers differ beyond the threshold, not at it', () => {
    expect(difference(100, 110, 10)).toEqual({ delta: 10, delta_percent: 10, differs: false });
    expect(difference(100, 89, 10)).toEqual({ delta: -11, delta_percent: -11, differs: true });
    expect(difference(0.1, 0.11, 10)).toEqual({ delta: 0.01, delta_percent: 10, differs: false });
    expect(difference(0.3, 0.1, 50)).toEqual({ delta: -0.2, delta_percent: -66.6666666667, differs: true });
  });

  it('numbers differ whenever the baseline is zero and the candidate is not, and have no percentage then', () => {
    expect(difference(0, 1, 1_000_000)).toEqual({ delta: 1, delta_percent: null, differs: true });
    expect(difference(0, 0, 0)).toEqual({ delta: 0, delta_percent: 0, differs: false });
    expect(difference(5, 0, 10)).toEqual({ delta: -5, delta_percent: -100, differs: true });
  });

  it('the delta of numbers changes its sign when the sides are swapped', () => {
    fc.assert(
      fc.property(amount, amount, threshold, (a, b, percent) => {
        const there = difference(a, b, percent).delta ?? NaN;
        const back = difference(b, a, percent).delta ?? NaN;
        expect(there + back).toBe(0);
      }),
    );
  });

  it('numbers never differ from themselves', () => {
    fc.assert(
      fc.property(amount, threshold, (a, percent) => {
        expect(difference(a, a, percent)).toEqual({ delta: 0, delta_percent: 0, differs: false });
      }),
    );
  });

  it('numbers that differ under a threshold differ under each smaller one', () => {
    fc.assert(
      fc.property(amount, amount, threshold, threshold, (a, b, p, q) => {
        const [less, more] = [Math.min(p, q), Math.max(p, q)];
        if (difference(a, b, more).differs) expect(difference(a, b, less).differs).toBe(true);
      }),
    );
  });

  it('numbers are compared by the magnitude of the baseline, whatever its sign', () => {
    expect(difference(-2, -1, 10)).toEqual({ delta: 1, delta_percent: 50, differs: true });
  });
});

describe('everything else', () => {
  it('other values differ when they are not the same', () => {
    expect(one('outcome', {}, { outcome: 'error' })).toEqual({
      field: 'outcome',
      baseline: 'success',
      candidate: 'error',
      delta: null,
      delta_percent: null,
      differs: true,
    });
    expect(one('outcome', {}, {})?.differs).toBe(false);
    expect(one('models', {}, { models: ['a'] })?.differs).toBe(true);
    expect(one('models', {}, {})?.differs).toBe(false);
    expect(one('response', { response: 'x' }, { response: null })?.differs).toBe(true);
    expect(one('agent_id', { agent_id: null }, { agent_id: null })?.differs).toBe(false);
  });
});

describe('judge_score', () => {
  const scores = [
    { judge_id: 'judge_1', judge_name: 'polite', score: 1 },
    { judge_id: 'judge_2', judge_name: 'short', score: 0.2 },
  ];

  it('judge_score is the mean of all judges, or the score of one, by name or id', () => {
    expect(one('judge_score', { scores }, { scores: [] })).toMatchObject({
      baseline: 0.6,
      candidate: null,
      delta: null,
      differs: true,
    });
    expect(one('judge_score.short', { scores }, { scores })).toMatchObject({
      baseline: 0.2,
      candidate: 0.2,
      delta: 0,
      differs: false,
    });
    expect(one('judge_score.judge_1', { scores }, { scores })).toMatchObject({ baseline: 1 });
    expect(one('judge_score', {}, {})).toMatchObject({ baseline: null, candidate: null, differs: false });
  });
});

describe('fields', () => {
  it('fields are the known ones, and one judge by name', () => {
    expect(COMPARE_FIELDS.every(isCompareField)).toBe(true);
    expect(['judge_score.x', 'judge_score.a b'].every(isCompareField)).toBe(true);
    expect(['', 'judge_score.', 'duration', 'scores', 'constructor', 'Duration_ms'].some(isCompareField)).toBe(false);
  });

  it('fields are answered in the requested order, all but the texts by default', () => {
    expect(compareTraces(aTrace(), aTrace(), ['tags', 'spans'], 10).map(({ field }) => field)).toEqual([
      'tags',
      'spans',
    ]);
    expect(COMPARE_FIELDS.filter((field) => !DEFAULT_FIELDS.includes(field))).toEqual(['prompt', 'response']);
  });
});
