// The two handles over a histogram of durations, costs or tokens. Ranges are wider the larger their
// values, so a handle stands on the edge of a range and never between two. Ranges without traces are
// left out by the API; the edges of those that are there are enough to choose by.

export interface ValueBucket {
  from: number;
  /** Not included in the range; null for the last range. */
  to: number | null;
  traces: number;
}

/** Handles as indexes: low is the first chosen range, high is the one after the last. */
export interface Handles {
  low: number;
  high: number;
}

/** Returns the handles of a minimum and a maximum, each on the nearest edge that leaves nothing out. */
export function handlesOf(buckets: readonly ValueBucket[], min: number | null, max: number | null): Handles {
  const low =
    min === null
      ? 0
      : Math.max(
          0,
          buckets.findLastIndex(({ from }) => from <= min),
        );
  const beyond = max === null ? -1 : buckets.findIndex(({ from }) => from > max);
  const high = beyond === -1 ? buckets.length : beyond;
  return { low, high: Math.max(low + 1, high) };
}

/** Returns the minimum and maximum of two handles; null where a handle stands at its end. */
export function boundsOf(
  buckets: readonly ValueBucket[],
  { low, high }: Handles,
): { min: number | null; max: number | null } {
  return {
    min: low <= 0 ? null : (buckets[low]?.from ?? null),
    max: high >= buckets.length ? null : (buckets[high - 1]?.to ?? null),
  };
}

/** Returns the handles after one moved by a number of ranges; they stay one range apart. */
export function movedHandle(handles: Handles, which: 'low' | 'high', by: number, buckets: number): Handles {
  if (which === 'low') return { ...handles, low: Math.min(Math.max(0, handles.low + by), handles.high - 1) };
  return { ...handles, high: Math.max(Math.min(buckets, handles.high + by), handles.low + 1) };
}
