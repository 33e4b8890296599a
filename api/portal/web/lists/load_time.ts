// The moment at which the relative range of a list ends, remembered by query: rows, counts and
// histogram of one load cover the same time, and Back finds the pages that are still in the cache.

const KEPT_MS = 300_000;
const KEPT_MAX = 50;
const loads = new Map<string, number>();

/** Returns the time at which this query was first asked within KEPT_MS, or now. */
export function loadTime(query: string, now_ms: number): number {
  const known = loads.get(query);
  if (known !== undefined && now_ms - known < KEPT_MS) return known;
  renewLoadTime(query, now_ms);
  return now_ms;
}

/** Makes the query end now. */
export function renewLoadTime(query: string, now_ms: number): void {
  loads.delete(query);
  loads.set(query, now_ms);
  for (const [oldest] of loads) {
    if (loads.size <= KEPT_MAX) break;
    loads.delete(oldest);
  }
}
