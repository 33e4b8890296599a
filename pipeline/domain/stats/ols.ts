// Ordinary least squares of one variable, by sums about the means, which lose no digits to large
// values. Pure. Prediction interval of one further observation: y ± t(1 - a/2, n - 2) · s · sqrt(1
// + 1/n + (x - x̄)² / Sxx) (Draper and Smith, Applied Regression Analysis, 3rd ed., 3.1).
import { tQuantile } from './student_t.ts';

export interface LineFit {
  n: number;
  mean_x: number;
  mean_y: number;
  slope: number;
  intercept: number;
  /** Sum of squares of x about its mean. */
  sxx: number;
  /** Standard deviation of the residuals, with n - 2 degrees of freedom. */
  residual_sd: number;
  /** Null when undefined, because y does not vary. */
  r_squared: number | null;
}

export interface Interval {
  value: number;
  lower: number;
  upper: number;
}

/** @param points [x, y], at least three, with varying x */
export function fitLine(points: readonly (readonly [number, number])[]): LineFit {
  const n = points.length;
  const mean_x = mean(points.map(([x]) => x));
  const mean_y = mean(points.map(([, y]) => y));
  let [sxx, sxy, syy] = [0, 0, 0];
  for (const [x, y] of points) {
    sxx += (x - mean_x) ** 2;
    sxy += (x - mean_x) * (y - mean_y);
    syy += (y - mean_y) ** 2;
  }
  const slope = sxy / sxx;
  let sse = 0;
  for (const [x, y] of points) sse += (y - mean_y - slope * (x - mean_x)) ** 2;
  const flat = points.every(([, y]) => y === points[0]?.[1]);
  return {
    n,
    mean_x,
    mean_y,
    slope,
    intercept: mean_y - slope * mean_x,
    sxx,
    residual_sd: Math.sqrt(sse / (n - 2)),
    r_squared: flat || syy === 0 ? null : Math.max(0, 1 - sse / syy),
  };
}

/** Returns the line's value at x with the prediction interval of a further observation there. */
export function predictLine(fit: LineFit, x: number, confidence: number): Interval {
  const { n, mean_x, mean_y, slope, sxx, residual_sd } = fit;
  const value = mean_y + slope * (x - mean_x);
  const half = tQuantile((1 + confidence) / 2, n - 2) * residual_sd * Math.sqrt(1 + 1 / n + (x - mean_x) ** 2 / sxx);
  return { value, lower: value - half, upper: value + half };
}

/**
 * Returns half of the prediction interval of the sum of further observations at x = from, from + 1, …, to. Their errors are
 * independent, so the interval of the sum is narrower than the sum of their intervals.
 */
export function sumHalfWidth(fit: LineFit, from: number, to: number, confidence: number): number {
  const { n, mean_x, sxx, residual_sd } = fit;
  const m = to - from + 1;
  const away = m * ((from + to) / 2 - mean_x);
  return tQuantile((1 + confidence) / 2, n - 2) * residual_sd * Math.sqrt(m + (m * m) / n + (away * away) / sxx);
}

/** Returns the mean in two passes: the second removes the rounding error of the first. */
export function mean(values: readonly number[]): number {
  const rough = values.reduce((sum, value) => sum + value, 0) / values.length;
  return rough + values.reduce((sum, value) => sum + (value - rough), 0) / values.length;
}
