// What the coming days will cost, or use: a line through the daily totals of whole days, with its 95 % prediction interval.
// In: totals of consecutive days, oldest first. Out: an estimate for each day after them, nothing below 0. Pure.
//
// Under 14 days, or where the days do not vary (r_squared is then undefined), the estimate is their mean, with the interval
// of one further observation of a normal variable: mean ± t(0.975, n - 1) · s · sqrt(1 + 1/n) (Hahn and Meeker, Statistical
// Intervals, 4.7); of fewer than two days no deviation can be known, and the interval is the mean alone.
import { fitLine, type Interval, type LineFit, mean, predictLine } from './ols.ts';
import { tQuantile } from './student_t.ts';

/** Days before today that a forecast learns from. */
export const TRAINING_DAYS = 90;
/** Fewer days than this carry no trend. */
const TREND_DAYS_MIN = 14;
const CONFIDENCE = 0.95;

export interface TrainedForecast {
  /** Days that it has learned from. */
  days: number;
  /** Null where the mean is used. */
  r_squared: number | null;
  mean_fallback: boolean;
  /** The estimate for the day that comes `ahead` days after the first one after the history: 0 is today. */
  at: (ahead: number) => Interval;
}

/** @param history totals of consecutive whole days; the last one is yesterday's */
export function trainForecast(history: readonly number[]): TrainedForecast {
  const days = history.length;
  const fit: LineFit | null = days < TREND_DAYS_MIN ? null : fitLine(history.map((total, index) => [index, total]));
  if (fit === null || fit.r_squared === null) {
    const level = aboveZero(aroundMean(history));
    return { days, r_squared: null, mean_fallback: true, at: () => level };
  }
  return {
    days,
    r_squared: fit.r_squared,
    mean_fallback: false,
    at: (ahead) => aboveZero(predictLine(fit, days + ahead, CONFIDENCE)),
  };
}

function aroundMean(history: readonly number[]): Interval {
  const n = history.length;
  const value = n === 0 ? 0 : mean(history);
  if (n < 2 || history.every((total) => total === history[0])) return { value, lower: value, upper: value };
  const deviation = Math.sqrt(history.reduce((sum, total) => sum + (total - value) ** 2, 0) / (n - 1));
  const half = tQuantile((1 + CONFIDENCE) / 2, n - 1) * deviation * Math.sqrt(1 + 1 / n);
  return { value, lower: value - half, upper: value + half };
}

function aboveZero({ value, lower, upper }: Interval): Interval {
  return { value: Math.max(0, value), lower: Math.max(0, lower), upper: Math.max(0, upper) };
}

/** Where use is heading in its period. */
export interface Projection {
  /** What will have been used by the end of the period. */
  predicted: number;
  /** Days from today on which the limit is reached, 0 for today; null where it is not within the period. */
  reached_in: number | null;
}

/**
 * What use so far and the forecast of the days left come to.
 * @param used in the period until now; today's part of it is `usedToday`
 * @param daysLeft days of the period from today on, today included
 */
export function projectUse(
  forecast: TrainedForecast,
  { used, usedToday, daysLeft, limit }: { used: number; usedToday: number; daysLeft: number; limit: number },
): Projection {
  let predicted = used;
  let reached_in: number | null = used >= limit && daysLeft > 0 ? 0 : null;
  for (let ahead = 0; ahead < daysLeft; ahead++) {
    const { value } = forecast.at(ahead);
    // Of today, only what is still to come.
    predicted += ahead === 0 ? Math.max(0, value - usedToday) : value;
    if (reached_in === null && predicted >= limit) reached_in = ahead;
  }
  return { predicted, reached_in };
}
