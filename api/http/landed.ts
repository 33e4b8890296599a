// Waits for events that are acknowledged and have not landed: a request that names a trace right
// after sending it waits instead of being rejected.
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, type ErrorCode } from './errors.ts';

/** Acknowledged events are visible within a second or two; the wait ends after this long. */
const LANDING_MS_MAX = 3000;
const LANDING_LOOK_MS = 100;

/**
 * Errors for a trace that has not landed: unknown, or another organization's trace with the same
 * id.
 */
export const TRACE_NOT_YET: readonly ErrorCode[] = ['trace_not_found', 'cross_org_access'];

/**
 * Calls `find` until it finds something, for at most LANDING_MS_MAX.
 * @param mayCome error codes that may mean that the events have not landed yet
 * @throws whatever `find` throws, at once where waiting cannot help
 */
export async function awaitLanding<T>(
  find: () => Promise<T>,
  mayCome: readonly ErrorCode[],
  signal: AbortSignal,
): Promise<T> {
  const deadline = performance.now() + LANDING_MS_MAX;
  for (;;) {
    try {
      return await find();
    } catch (error) {
      if (!(error instanceof ApiError) || !mayCome.includes(error.code) || performance.now() > deadline) throw error;
    }
    await sleep(LANDING_LOOK_MS, undefined, { signal });
  }
}
