// Calls that run a job on demand: from the process that was asked for it to one of the workers. The
// worker answers the request with `jobTakenShape`, then sends `jobProgressShape` to the caller's
// inbox every second until the run ends. Nothing is stored: a call that no worker takes is not run
// later.
import { z } from 'zod';

export const JOB_CALL_SUBJECT = 'jobs.run';
/** Queue group of the workers: one of them receives each call. */
export const JOB_CALL_GROUP = 'jobs';

export const jobCallShape = z.object({
  name: z.string(),
  /**
   * The instant as of which to run, milliseconds since the epoch; null is the time at which the run
   * starts.
   */
  now: z.number().nullable(),
  args: z.unknown().optional(),
  /** Subject on which the caller hears of the progress. */
  inbox: z.string(),
});

export const jobTakenShape = z.object({ taken: z.enum(['yes', 'unknown', 'running', 'unavailable']) });

export const jobProgressShape = z.discriminatedUnion('state', [
  z.object({ state: z.literal('running') }),
  z.object({
    state: z.literal('ended'),
    now: z.number(),
    started_at: z.number(),
    ended_at: z.number(),
    result: z.record(z.string(), z.unknown()),
  }),
  z.object({ state: z.literal('failed'), unavailable: z.boolean(), detail: z.string() }),
]);

/**
 * A run that has ended, well or not. Times are milliseconds since the epoch; `now` is the instant
 * as of which it ran.
 */
export type JobEnd = Exclude<z.infer<typeof jobProgressShape>, { state: 'running' }>;
