// The numbers of the home page from three series: the last 24 hours, the 24 hours before, and both by
// the hour. Pure.

/** The columns of a series that the sums need; each has an entry per bucket. */
interface SeriesColumns {
  traces: readonly number[];
  errors: readonly number[];
  timeouts: readonly number[];
  cost_usd: readonly number[];
  p95_duration_ms: readonly (number | null)[];
}

export interface DayNumbers {
  traces: number;
  failed: number;
  /** Share of failed traces; null without traces. */
  failed_share: number | null;
  cost_usd: number;
  p95_ms: number | null;
}

/** Returns the sums of a series; the 95th percentile is the mean of its buckets, weighted by their traces. */
export function numbersOf(series: SeriesColumns | undefined): DayNumbers {
  const sum = (values: readonly number[] | undefined): number => (values ?? []).reduce((all, one) => all + one, 0);
  const traces = sum(series?.traces);
  const failed = sum(series?.errors) + sum(series?.timeouts);
  const weighted = (series?.p95_duration_ms ?? []).map((value, at) => (value ?? 0) * (series?.traces[at] ?? 0));
  return {
    traces,
    failed,
    failed_share: traces === 0 ? null : failed / traces,
    cost_usd: sum(series?.cost_usd),
    p95_ms: traces === 0 ? null : sum(weighted) / traces,
  };
}

/** A percentile of the last 24 hours and of the 24 hours before. */
export interface Percentile {
  now: number | null;
  before: number | null;
  /** True where it is the mean of two halves of each day instead of a percentile of all traces. */
  estimated: boolean;
}

/** Returns the 95th percentile of all traces, or the estimate where that is not known. */
export function percentileOf(
  exact: { now: number | null; before: number | null } | undefined,
  estimate: { now: number | null; before: number | null },
): Percentile {
  return exact === undefined ? { ...estimate, estimated: true } : { ...exact, estimated: false };
}

/** Returns the change against the day before as a share, or null where there is nothing to compare with. */
export function changeOf(now: number | null, before: number | null): number | null {
  return now === null || before === null || before === 0 ? null : now / before - 1;
}

/**
 * Returns the failed share, the 95th percentile and the traces of each few buckets together, as points of a line.
 * The percentile is the largest of its buckets.
 */
export function pointsOf(
  series: SeriesColumns | undefined,
  together: number,
): { failed_share: number[]; p95_ms: (number | null)[]; traces: number[] } {
  const points = { failed_share: [] as number[], p95_ms: [] as (number | null)[], traces: [] as number[] };
  const length = series?.traces.length ?? 0;
  for (let from = 0; series !== undefined && from < length; from += together) {
    const part = {
      traces: series.traces.slice(from, from + together),
      errors: series.errors.slice(from, from + together),
      timeouts: series.timeouts.slice(from, from + together),
      cost_usd: [],
      p95_duration_ms: series.p95_duration_ms.slice(from, from + together),
    };
    const known = part.p95_duration_ms.filter((value) => value !== null);
    points.failed_share.push(numbersOf(part).failed_share ?? 0);
    points.p95_ms.push(known.length === 0 ? null : Math.max(...known));
    points.traces.push(numbersOf(part).traces);
  }
  return points;
}
