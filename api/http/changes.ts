// Compares a record before and after a request that sets fields: the differing fields for the audit
// log, and whether the record differs at all.
import { isDeepStrictEqual } from 'node:util';

/** Returns {field: {from, to}} for the fields that differ. */
export function fromTo<T extends object, K extends keyof T & string>(
  before: T,
  after: T,
  fields: readonly K[],
): Record<string, { from: T[K]; to: T[K] }> {
  return Object.fromEntries(
    fields
      .filter((field) => !isDeepStrictEqual(before[field], after[field]))
      .map((field) => [field, { from: before[field], to: after[field] }]),
  );
}

/**
 * Returns `after` with the time of its change, or `before` itself where nothing else differs.
 * @param now milliseconds since the epoch
 */
export function touched<T extends { updated_at: string }>(before: T, after: T, now: number): T {
  if (isDeepStrictEqual({ ...after, updated_at: before.updated_at }, before)) return before;
  return { ...after, updated_at: new Date(now).toISOString() };
}
