// Geometry of the histogram over a list: bars by outcome in a box of one unit by one unit, and the
// times between which a drag or the keyboard chooses. Pure numbers; the component draws them.

export interface Bucket {
  /** Start of the bucket, milliseconds since the epoch. */
  start_ms: number;
  traces: number;
  errors: number;
  timeouts: number;
}

export interface Bar {
  start_ms: number;
  end_ms: number;
  /** Left edge and width as shares of the width. */
  x: number;
  width: number;
  /** Heights as shares of the height, from the baseline up: successes, timeouts, errors on top. */
  success: number;
  timeout: number;
  error: number;
  traces: number;
}

/** Returns one bar per bucket; the highest has the full height. */
export function barsOf(buckets: readonly Bucket[], bucket_ms: number): Bar[] {
  const [first] = buckets;
  const last = buckets.at(-1);
  if (first === undefined || last === undefined || bucket_ms <= 0) return [];
  const from = first.start_ms;
  const length = last.start_ms + bucket_ms - from;
  const top = Math.max(1, ...buckets.map(({ traces }) => traces));
  return buckets.map(({ start_ms, traces, errors, timeouts }) => ({
    start_ms,
    end_ms: start_ms + bucket_ms,
    x: (start_ms - from) / length,
    width: bucket_ms / length,
    success: Math.max(0, traces - errors - timeouts) / top,
    timeout: timeouts / top,
    error: errors / top,
    traces,
  }));
}

/** Returns the index of the bar at a share of the width, or −1 where there is none. */
export function barAt(bars: readonly Bar[], share: number): number {
  const at = bars.findIndex(({ x, width }) => share >= x && share < x + width);
  if (at !== -1 || bars.length === 0) return at;
  return share < 0 ? 0 : share >= 1 ? bars.length - 1 : -1;
}

/** Returns the time between two bars, whichever comes first; the end is the last millisecond of a bar. */
export function chosenTime(bars: readonly Bar[], a: number, b: number): { since_ms: number; until_ms: number } | null {
  const first = bars[Math.min(a, b)];
  const last = bars[Math.max(a, b)];
  if (first === undefined || last === undefined) return null;
  return { since_ms: first.start_ms, until_ms: last.end_ms - 1 };
}

/** Returns the sums of a stretch of buckets, for the summary in words. */
export function totalsOf(buckets: readonly Bucket[]): { traces: number; errors: number; timeouts: number } {
  return buckets.reduce(
    (sum, { traces, errors, timeouts }) => ({
      traces: sum.traces + traces,
      errors: sum.errors + errors,
      timeouts: sum.timeouts + timeouts,
    }),
    { traces: 0, errors: 0, timeouts: 0 },
  );
}
