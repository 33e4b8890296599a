// Names of the ticks of a time axis. Neighbours that differ by a millisecond far from the start need
// more digits than a duration has.
import { duration } from '../text/format.ts';

const SECOND_MS = 1000;
const MINUTE_MS = 60_000;
const DIGITS_MAX = 6;

/**
 * Returns the name of a tick: 2 s, 3 m 31.45 s.
 * @param stepMs distance to the next tick, milliseconds; 0 if there is none
 */
export function tickName(timeMs: number, stepMs: number): string {
  if (timeMs < SECOND_MS || stepMs <= 0 || stepMs >= SECOND_MS) return duration(timeMs);
  const digits = Math.min(DIGITS_MAX, Math.ceil(-Math.log10(stepMs / SECOND_MS) - 1e-9));
  const minutes = Math.floor(timeMs / MINUTE_MS);
  const seconds = ((timeMs - minutes * MINUTE_MS) / SECOND_MS).toFixed(digits);
  return minutes === 0 ? `${seconds}\u00a0s` : `${minutes}\u00a0m ${seconds}\u00a0s`;
}
