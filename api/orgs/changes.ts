// What the audit log says of a change: the fields that differ, each with what it was and what it became.
import { isDeepStrictEqual } from 'node:util';

/** {field: {from, to}} for those of the fields that differ. */
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
