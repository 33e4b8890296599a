// Waits between tries of a request.
import { setTimeout as pause } from 'node:timers/promises';

const FIRST_WAIT_MS = 250;
const WAIT_MS_MAX = 30_000;

/** Statuses after which the same request may succeed later. */
export const isTransient = (status: number): boolean => status === 408 || status === 429 || status >= 500;

/**
 * Returns how long to wait before the next try, milliseconds: as long as the answer says, else twice
 * as long as the last time, with up to half of it at random so that clients do not return together.
 * @param tries tries so far, 1 or more
 */
export function waitMs(tries: number, retryAfter: string | null, random = Math.random()): number {
  const seconds = Number(retryAfter ?? NaN);
  if (seconds >= 0) return Math.min(WAIT_MS_MAX, seconds * 1000);
  return Math.min(WAIT_MS_MAX, FIRST_WAIT_MS * 2 ** (tries - 1)) * (0.5 + random / 2);
}

/**
 * Waits.
 * @param options.ref whether the wait keeps the process alive; by default it does not
 * @throws AbortError when the signal aborts
 */
export const waitFor = (ms: number, signal?: AbortSignal, { ref = false } = {}): Promise<void> =>
  pause(ms, undefined, { ref, ...(signal === undefined ? {} : { signal }) });
