// Days as whole numbers (days since 1970-01-01, UTC), and totals of consecutive days. Pure.

const DAY_MS = 86_400_000;
/** The last day that the store can represent: 2149-06-06. */
const DAY_MAX = 65_535;

/** Returns the day (UTC) of an instant in milliseconds, clamped to what the store can represent. */
export function dayOf(ms: number): number {
  return Math.min(DAY_MAX, Math.max(0, Math.floor(ms / DAY_MS)));
}

/** Returns the first instant of a day, milliseconds. */
export function startOfDay(day: number): number {
  return day * DAY_MS;
}

/** Returns the day as YYYY-MM-DD. */
export function dateOf(day: number): string {
  return new Date(startOfDay(day)).toISOString().slice(0, 10);
}

/**
 * Returns the totals of the days from `from` inclusive to `to` exclusive; a day without a total
 * counts 0.
 */
export function zeroFilled(totals: ReadonlyMap<number, bigint>, from: number, to: number): bigint[] {
  return Array.from({ length: Math.max(0, to - from) }, (_, index) => totals.get(from + index) ?? 0n);
}
