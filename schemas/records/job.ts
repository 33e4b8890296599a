// Record of a scheduled job in KV: which worker runs it now, and how its last run ended. Times are
// ISO 8601.
import { z } from 'zod';

export const jobRecord = z.object({
  name: z.string(),
  /** Id of the worker that runs it now; empty when none does. */
  holder: z.string(),
  /**
   * End of the holder's lease unless it is extended, by the holder's clock. It is for people: other
   * workers measure by their own clocks.
   */
  deadline: z.iso.datetime().nullable(),
  /** Newest instant of the schedule that was handled. */
  slot: z.iso.datetime(),
  /** Number of failed runs for the next instant of the schedule. */
  failures: z.int(),
  last_started_at: z.iso.datetime().nullable(),
  last_ended_at: z.iso.datetime().nullable(),
  /** null before the first run has ended. */
  last_outcome: z.enum(['done', 'failed']).nullable(),
});
export type JobRecord = z.infer<typeof jobRecord>;
