import { describe, expect, it } from 'vitest';
import { meanDifference } from '../../../pipeline/domain/evals/mean_difference.ts';

const of = (values: readonly number[]) => {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const deviation = values.length < 2 ? null : Math.sqrt(squares / (values.length - 1));
  return meanDifference({ pairs: values.length, mean: values.length === 0 ? null : mean, deviation });
};

describe('the mean difference of paired scores', () => {
  it('equals the interval of the paired t test for data with a published result', () => {
    // R, `sleep`: t.test(extra ~ group, paired = TRUE) gives t = -4.0621, df = 9, p = 0.002833 and
    // the interval -2.4598858 to -0.7001142 about the mean -1.58.
    const first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0, 2];
    const second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
    const found = of(first.map((value, index) => value - (second[index] ?? 0)));
    expect(found?.mean).toBeCloseTo(-1.58, 12);
    expect(found?.low).toBeCloseTo(-2.4598858, 6);
    expect(found?.high).toBeCloseTo(-0.7001142, 6);
    expect(found).toMatchObject({ pairs: 10, is_beyond_chance: true });
  });

  it('is within chance when the interval contains 0', () => {
    expect(of([1, -1, 0.5, -0.4, 0.2])).toMatchObject({ is_beyond_chance: false });
  });

  it('has no interval for a single pair and is null without one', () => {
    expect(of([0.5])).toEqual({
      pairs: 1,
      mean: 0.5,
      half_width: null,
      low: null,
      high: null,
      is_beyond_chance: false,
    });
    expect(of([])).toBeNull();
  });

  it('counts equal differences as beyond chance from six pairs on, by the sign test', () => {
    const equal = (pairs: number) => of(Array.from({ length: pairs }, () => 1))?.is_beyond_chance;
    expect([2, 5, 6, 50].map(equal)).toEqual([false, false, true, true]);
    expect(of(Array.from({ length: 50 }, () => 0))?.is_beyond_chance).toBe(false);
  });
});
