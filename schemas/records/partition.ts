// Shape of the record of a partition in KV: its owner writes it, other workers and the API processes read it.
import { z } from 'zod';

export const partitionRecord = z.object({
  partition: z.number().int(),
  /** Id of the owning worker; empty when the partition has no owner. */
  owner: z.string(),
  epoch: z.number().int(),
  /** Position in the log up to which every message of the partition has landed; see schemas/log_layout.ts. */
  checkpoint: z.number().int(),
  /** Position up to which every trace is complete and announced. */
  completed_through: z.number().int(),
  /** True once its owner reads it and has written a checkpoint. Unset by workers of an older version. */
  up: z.boolean().optional(),
  /** Revision of the shards' record that its owner followed (see ShardMap). Unset in a store with one server. */
  shards_at: z.number().int().optional(),
  at: z.string(),
});
export type PartitionRecord = z.infer<typeof partitionRecord>;

/** Key of a partition in its bucket. */
export const partitionKey = (partition: number): string => `partition.${partition}`;
