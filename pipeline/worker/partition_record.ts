// The record of a partition in the bucket `partitions`: its owner, and how far the log of the partition has been processed.
import { z } from 'zod';

export const partitionRecord = z.object({
  partition: z.number().int(),
  /** Empty when nobody owns it. */
  owner: z.string(),
  epoch: z.number().int(),
  /** JetStream sequence up to which all has landed. */
  checkpoint: z.number().int(),
  /** JetStream sequence up to which every trace is complete and told. */
  completed_through: z.number().int(),
  /** Whether its owner has brought it up, and written a checkpoint since. Unset by workers of an older version. */
  up: z.boolean().optional(),
  at: z.string(),
});
export type PartitionRecord = z.infer<typeof partitionRecord>;
