// How deep a JSON value is nested. What walks a value calls itself for every level, so what comes from outside is bounded before.

/** Levels of nesting that an event or a body may have; beyond it JSON is made to hurt, not to tell something. */
export const DEPTH_MAX = 128;

/** Whether a value has more levels of nesting than that. */
export function deeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) return value.some((item) => deeperThan(item, levels - 1));
  for (const key in value) {
    if (deeperThan((value as Record<string, unknown>)[key], levels - 1)) return true;
  }
  return false;
}
