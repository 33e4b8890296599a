// Forecasts cost or use of the coming days: a line through the daily totals of whole days, with its
// 95 % prediction interval. In: totals of consecutive days, oldest first. Out: an estimate for each
// later day, never below 0. Pure.
//
// With fewer than 14 days, or when the days do not vary (r_squared is then undefined), the estimate
// is their mean, with the interval of one further observation of a normal variable: mean ± t(0.975,
// n - 1) · s · sqrt(1 + 1/n) (Hahn and Meeker, Statistical Intervals, 4.7). With fewer than two
// days no deviation is known, and the interval is the mean alone.
import { fitLine, type Interval, type LineFit, mean, predictLine } from './ols.ts';
import { tQuantile } from './student_t.ts';

/** Days before today from which a forecast is computed. */
export const TRAINING_DAYS = 90;
/** Fewer days than this show no trend. */
const TREND_DAYS_MIN = 14;
const CONFIDENCE = 0.95;

export interface TrainedForecast {
  /** Days of history used. */
  days: number;
  /** Null when the mean is used. */
  r_squared: number | null;
  mean_fallback: boolean;
  /**
   * Returns the estimate for the day `ahead` days after the first one after the history: 0 is
   * today.
   */
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

/** Expected use at the end of the period. */
export interface Projection {
  /** Use expected by the end of the period. */
  predicted: number;
  /**
   * Days from today until the limit is reached, 0 for today; null when it is not reached within the
   * period.
   */
  reached_in: number | null;
}

/**
 * Combines use so far with the forecast of the remaining days.
 * @param used use in the period until now, of which `usedToday` is today's part
 * @param daysLeft remaining days of the period, today included
 */
export function projectUse(
  forecast: TrainedForecast,
  { used, usedToday, daysLeft, limit }: { used: number; usedToday: number; daysLeft: number; limit: number },
): Projection {
  let predicted = used;
  let reached_in: number | null = used >= limit && daysLeft > 0 ? 0 : null;
  for (let ahead = 0; ahead < daysLeft; ahead++) {
    const { value } = forecast.at(ahead);
    // For today, only the part still expected counts.
    predicted += ahead === 0 ? Math.max(0, value - usedToday) : value;
    if (reached_in === null && predicted >= limit) reached_in = ahead;
  }
  return { predicted, reached_in };
}
