// The record of a partition in the bucket `partitions`: its owner, and how far the partition has
// been processed.
import { z } from 'zod';

export const partitionRecord = z.object({
  partition: z.number().int(),
  /** Id of the worker; empty if the partition has no owner. */
  owner: z.string(),
  epoch: z.number().int(),
  /** JetStream sequence up to which everything has landed. */
  checkpoint: z.number().int(),
  /** JetStream sequence up to which every trace is complete, and its completion published. */
  completed_through: z.number().int(),
  /**
   * True once the owner has brought the partition up and written a checkpoint. Workers of older
   * versions leave it out.
   */
  up: z.boolean().optional(),
  at: z.string(),
});
export type PartitionRecord = z.infer<typeof partitionRecord>;
