// Record of repricing in KV: the plan that is being carried out. A worker that takes over writes a
// run of its own first, so that the previous worker can start nothing any more.
import { z } from 'zod';

export const repricingRecord = z.object({
  /** null while no plan is under way. */
  plan_id: z.string().nullable(),
  run: z.string(),
});
export type RepricingRecord = z.infer<typeof repricingRecord>;

/** Arguments of the job. Times are milliseconds since the epoch; `until` is exclusive. */
export const repriceArgs = z.object({
  org_id: z.string(),
  since: z.int(),
  until: z.int(),
  model: z.string().nullable(),
});
export type RepriceArgs = z.infer<typeof repriceArgs>;

/** Kind of the job. */
export const REPRICE = 'reprice';
