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
