// Waits for what was acknowledged and has not landed yet: whoever names a trace right after sending it is made to wait, not refused.
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, type ErrorCode } from './errors.ts';

/** What was acknowledged is visible within a second or two. */
const LANDING_MS_MAX = 3000;
const LANDING_LOOK_MS = 100;

/** What a trace that has not landed is until then: unknown, or another org's that has the same id. */
export const TRACE_NOT_YET: readonly ErrorCode[] = ['trace_not_found', 'cross_org_access'];

/**
 * Looks for something until it is there, for LANDING_MS_MAX at most.
 * @param mayCome error codes that say no more than that it is not there yet
 * @throws whatever `find` throws, at once where waiting cannot help
 */
export async function landed<T>(
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
