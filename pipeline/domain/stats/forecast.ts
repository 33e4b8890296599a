// Forecasts cost or use of the coming days: a line through the daily totals of whole days, with its
// 95 % prediction interval. In: totals of consecutive days, oldest first. Out: an estimate for each
// later day, never below 0. Pure.
//
// With fewer than 14 days, or when the days do not vary (r_squared is then undefined), the estimate
// is their mean, with the interval of one further observation of a normal variable: mean ± t(0.975,
// n - 1) · s · sqrt(1 + 1/n) (Hahn and Meeker, Statistical Intervals, 4.7). With fewer than two
// days no deviation is known, and the interval is the mean alone.
import { fitLine, type Interval, type LineFit, mean, predictLine, sumHalfWidth } from './ols.ts';
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
  /** Returns half of the interval of the sum of the days from today to the day `ahead` days later. */
  sumHalf: (ahead: number) => number;
}

/** @param history totals of consecutive whole days; the last one is yesterday's */
export function trainForecast(history: readonly number[]): TrainedForecast {
  const days = history.length;
  const fit: LineFit | null = days < TREND_DAYS_MIN ? null : fitLine(history.map((total, index) => [index, total]));
  if (fit === null || fit.r_squared === null) {
    const { level, sumHalf } = aroundMean(history);
    return { days, r_squared: null, mean_fallback: true, at: () => aboveZero(level), sumHalf };
  }
  return {
    days,
    r_squared: fit.r_squared,
    mean_fallback: false,
    at: (ahead) => aboveZero(predictLine(fit, days + ahead, CONFIDENCE)),
    sumHalf: (ahead) => sumHalfWidth(fit, days, days + ahead, CONFIDENCE),
  };
}

function aroundMean(history: readonly number[]): { level: Interval; sumHalf: (ahead: number) => number } {
  const n = history.length;
  const value = n === 0 ? 0 : mean(history);
  if (n < 2 || history.every((total) => total === history[0]))
    return { level: { value, lower: value, upper: value }, sumHalf: () => 0 };
  const deviation = Math.sqrt(history.reduce((sum, total) => sum + (total - value) ** 2, 0) / (n - 1));
  const factor = tQuantile((1 + CONFIDENCE) / 2, n - 1) * deviation;
  const half = factor * Math.sqrt(1 + 1 / n);
  return {
    level: { value, lower: value - half, upper: value + half },
    sumHalf: (ahead) => factor * Math.sqrt(ahead + 1 + (ahead + 1) ** 2 / n),
  };
}

function aboveZero({ value, lower, upper }: Interval): Interval {
  return { value: Math.max(0, value), lower: Math.max(0, lower), upper: Math.max(0, upper) };
}

/** Use so far in a budget period. */
interface PeriodUse {
  /** Use in the period until now, of which `usedToday` is today's part. */
  used: number;
  usedToday: number;
  /** Remaining days of the period, today included. */
  daysLeft: number;
}

/**
 * Combines use so far with the forecast of the remaining days.
 * @returns use of the period at the end of each remaining day, today first, never below the use so far
 */
export function projectDays(forecast: TrainedForecast, { used, usedToday, daysLeft }: PeriodUse): Interval[] {
  let predicted = used;
  return Array.from({ length: Math.max(0, daysLeft) }, (_, ahead) => {
    const { value } = forecast.at(ahead);
    // For today, only the part still expected counts.
    predicted += ahead === 0 ? Math.max(0, value - usedToday) : value;
    const half = forecast.sumHalf(ahead);
    return { value: predicted, lower: Math.max(used, predicted - half), upper: predicted + half };
  });
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

/** Returns the use expected by the end of the period, and when it reaches a limit. */
export function projectUse(forecast: TrainedForecast, { limit, ...use }: PeriodUse & { limit: number }): Projection {
  const days = projectDays(forecast, use);
  const at = use.used >= limit && days.length > 0 ? 0 : days.findIndex(({ value }) => value >= limit);
  return { predicted: days.at(-1)?.value ?? use.used, reached_in: at === -1 ? null : at };
}
