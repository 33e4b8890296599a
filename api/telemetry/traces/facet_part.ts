// The part of many traces in which facets are counted: slices of the time with about as many traces
// each, spread over all of it. The traces are counted by period first, and in the part beside the facets.
import type { ClickHouse } from '../../../sql/client/client.ts';
import type { QueryOptions } from '../../../sql/client/query.ts';
import type { ListFilters } from './filters.ts';
import { readCounted, readPeriods } from './facet_store.ts';

/** A time that is counted, up to but without `to_ms`. */
export interface Slice {
  from_ms: number;
  to_ms: number;
}

/** The traces that match some filters, by period. */
export interface Periods {
  /** Length of a period, milliseconds; period n begins at n times this. */
  period_ms: number;
  /** Ascending; periods without traces are left out. */
  periods: readonly { period: number; traces: number }[];
}

/** A part of the traces, which stands for all of them. */
export interface Part {
  slices: Slice[];
  /** Number of traces that a counted one stands for. */
  times: Promise<number>;
}

/** Slices of one part. More follow the time closer; with fewer, less is read beside them. */
const SLICES = 24;
/** Periods of a bounded time. Within a period traces are taken to be spread evenly. */
const PERIODS = 200;
const DAY_MS = 86_400_000;

/** Counts the traces by period: by day if the time has no beginning, or one in the future. */
export async function countPeriods(
  clickhouse: ClickHouse,
  filters: ListFilters,
  now: number,
  options: QueryOptions,
): Promise<Periods> {
  const { since_ms, until_ms = now } = filters;
  const isBounded = since_ms !== undefined && since_ms < until_ms;
  const period_ms = isBounded ? Math.ceil((until_ms - since_ms) / PERIODS) : DAY_MS;
  return { period_ms, periods: await readPeriods(clickhouse, { ...filters, period_ms }, options) };
}

/** Returns a part with about `tracesMax` of the traces; null where there are no more. */
export function partOf(
  clickhouse: ClickHouse,
  filters: ListFilters,
  counted: Periods,
  tracesMax: number,
  options: QueryOptions,
): Part | null {
  const total = tracesOf(counted);
  if (total <= tracesMax) return null;
  const slices = slicesOf(counted, Math.ceil(total / tracesMax));
  const times = readCounted(clickhouse, { ...filters, slices }, options).then(
    ([row]) => total / Math.max(1, row?.total ?? 0),
  );
  // A read that exceeds the bounds fails where its number is needed.
  times.catch(() => undefined);
  return { slices, times };
}

/** Returns what makes the number of counted traces that of all, and whether that is an estimate. */
export async function scaleOf(
  part: Part | null,
): Promise<{ scaled: (traces: number) => number; approximate: boolean }> {
  if (part === null) return { scaled: (traces) => traces, approximate: false };
  const times = await part.times;
  return { scaled: (traces) => Math.round(traces * times), approximate: true };
}

/** Returns the number of traces of all periods. */
export const tracesOf = ({ periods }: Periods): number => periods.reduce((sum, { traces }) => sum + traces, 0);

/**
 * Returns slices that together have about one in `share` of the traces. Each has another place in its
 * stretch than its neighbours, so that they do not all fall on one time of day.
 */
export function slicesOf(counted: Periods, share: number): Slice[] {
  const step = tracesOf(counted) / SLICES;
  return Array.from({ length: SLICES }, (_, n) => {
    const from = (n + (n % share) / share) * step;
    const [from_ms, to_ms] = [timeOf(counted, from), timeOf(counted, from + step / share)];
    return { from_ms: Math.floor(from_ms), to_ms: Math.ceil(to_ms) };
  });
}

/** Returns the time before which so many of the traces are, milliseconds since the epoch. */
function timeOf({ period_ms, periods }: Periods, traces: number): number {
  let left = traces;
  for (const { period, traces: here } of periods) {
    if (left < here) return (period + left / here) * period_ms;
    left -= here;
  }
  return ((periods.at(-1)?.period ?? 0) + 1) * period_ms;
}
