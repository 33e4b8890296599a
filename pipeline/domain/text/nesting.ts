// Bounds the nesting of JSON values. Functions that walk a value recurse once for each level, so
// input is bounded first.

/** Maximum levels of nesting in an event or a body; deeper JSON is an attack, not data. */
export const DEPTH_MAX = 128;

/** Returns true when a value has more levels of nesting than `levels`. */
export function deeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) return value.some((item) => deeperThan(item, levels - 1));
  for (const key in value) {
    if (deeperThan((value as Record<string, unknown>)[key], levels - 1)) return true;
  }
  return false;
}
