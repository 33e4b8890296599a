// The mean difference between the paired scores of two evals, with its 95 % confidence interval and
// whether it is beyond chance. In: the number of pairs, the mean and the sample standard deviation
// of their differences. Pure.
//
// The interval is that of the paired t test (NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.5.2
// applied to differences): mean ± t(0.975, n − 1) · s / √n. The t test says nothing when every pair
// differs by the same amount; the two-sided sign test then decides: n equal signs have the
// probability 2 · 0.5ⁿ by chance.
import { tQuantile } from '../stats/student_t.ts';

const CONFIDENCE = 0.95;
/** Two sides of the interval share what is outside it. */
const UPPER = 1 - (1 - CONFIDENCE) / 2;

interface PairedDifferences {
  /** Pairs that have a score on both sides. */
  pairs: number;
  /** Mean of candidate minus baseline; null without a pair. */
  mean: number | null;
  /** Sample standard deviation of the differences; null for fewer than two pairs. */
  deviation: number | null;
}

interface MeanDifference {
  pairs: number;
  mean: number;
  /** Half the width of the interval; null for fewer than two pairs. */
  half_width: number | null;
  low: number | null;
  high: number | null;
  is_beyond_chance: boolean;
}

/** Returns the difference with its interval; null without a pair. */
export function meanDifference({ pairs, mean, deviation }: PairedDifferences): MeanDifference | null {
  if (mean === null || pairs === 0) return null;
  if (deviation === null || pairs < 2)
    return { pairs, mean, half_width: null, low: null, high: null, is_beyond_chance: false };
  const half_width = (tQuantile(UPPER, pairs - 1) * deviation) / Math.sqrt(pairs);
  return {
    pairs,
    mean,
    half_width,
    low: mean - half_width,
    high: mean + half_width,
    is_beyond_chance: deviation === 0 ? mean !== 0 && 2 * 0.5 ** pairs < 1 - CONFIDENCE : Math.abs(mean) > half_width,
  };
}
