// Signals of erasures to workers.
//
// Requests that the owner of a partition forget what it holds in memory of erased data. The owner
// replies with an empty message once nothing that it made of the data is on its way to the store;
// other workers stay silent.
import { z } from 'zod';

/**
 * Subject on which an erasure asks the worker that folds events of Langfuse and LangSmith not to wait
 * for more events of an organization, whose id is the message. It is repeated until it has effect.
 */
export const FOLD_SUBJECT = 'erase.fold';
/** Subject of the requests to the owner of one partition; `*` for those of all partitions. */
export const forgetSubject = (partition: number | '*'): string => `erase.forget.${partition}`;
/** Returns the partition whose owner a request on the subject is for. */
export const forgottenPartition = (subject: string): number => Number(subject.split('.')[2]);

export const forgetShape = z.object({
  org_id: z.string(),
  trace_ids: z.array(z.string()),
  /**
   * traces: what owners hold of the traces. events: which events of the traces they have seen. org:
   * everything of the organization.
   */
  what: z.enum(['traces', 'events', 'org']).default('traces'),
});
export type Forget = z.output<typeof forgetShape>;
