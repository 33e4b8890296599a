// What KV holds of repricing: the plan that is being carried out. Whoever begins writes a run of his own first, so that whoever
// had it before can begin nothing any more.
import { z } from 'zod';

export const repricingRecord = z.object({
  /** Null while nothing is under way. */
  plan_id: z.string().nullable(),
  run: z.string(),
});
export type RepricingRecord = z.infer<typeof repricingRecord>;

/** What a worker is asked for. Times are milliseconds since the epoch; `until` is the first instant that is out. */
export const repriceArgs = z.object({
  org_id: z.string(),
  since: z.int(),
  until: z.int(),
  model: z.string().nullable(),
});
export type RepriceArgs = z.infer<typeof repriceArgs>;

/** The job that reprices. */
export const REPRICE = 'reprice';
