// Waits between attempts: exponential, with half of each wait left to chance, and bounded.
const FIRST_MS = 50;
const MAX_MS = 2000;

/** Returns the milliseconds to wait after the given attempt, where 0 is the first. */
export function backoffMs(attempt: number, random: () => number = Math.random): number {
  const ceiling = Math.min(MAX_MS, FIRST_MS * 2 ** Math.min(attempt, 16));
  return ceiling / 2 + random() * (ceiling / 2);
}

export interface RetryBounds {
  /** Longest wait after the first failure, milliseconds; it doubles with each further one. */
  firstMs: number;
  maxMs: number;
}

/**
 * Returns the milliseconds until the next attempt for a message that has failed `failures` times (1
 * or more).
 */
export function retryDelayMs(
  failures: number,
  { firstMs, maxMs }: RetryBounds,
  random: () => number = Math.random,
): number {
  const ceiling = Math.min(maxMs, firstMs * 2 ** Math.min(failures - 1, 30));
  return Math.round(ceiling / 2 + random() * (ceiling / 2));
}
