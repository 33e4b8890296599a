// Waits between tries: exponential with full jitter above a floor, bounded.
const FIRST_MS = 50;
const MAX_MS = 2000;

/** Milliseconds to wait after the given try (0 is the first). */
export function backoffMs(attempt: number, random: () => number = Math.random): number {
  const ceiling = Math.min(MAX_MS, FIRST_MS * 2 ** Math.min(attempt, 16));
  return ceiling / 2 + random() * (ceiling / 2);
}
