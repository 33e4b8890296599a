// What KV holds of a scheduled job: who runs it now, and how its last run went. Times are ISO 8601.
import { z } from 'zod';

export const jobRecord = z.object({
  name: z.string(),
  /** Worker that runs it now; empty for nobody. */
  holder: z.string(),
  /** Until when the holder has it unless it says more, by the holder's clock: for people, as others go by their own. */
  deadline: z.iso.datetime().nullable(),
  /** The newest instant of the schedule that was dealt with. */
  slot: z.iso.datetime(),
  /** Runs of the next slot that failed. */
  failures: z.int(),
  last_started_at: z.iso.datetime().nullable(),
  last_ended_at: z.iso.datetime().nullable(),
  /** Null before the first run has ended. */
  last_outcome: z.enum(['done', 'failed']).nullable(),
});
export type JobRecord = z.infer<typeof jobRecord>;
