// The interface between the ownership of partitions and the part of a worker that processes them.
import type { PartitionRecord } from '../../schemas/records/partition.ts';

/** The part of a worker that processes the partitions which the worker owns. */
export interface PartitionHolder {
  /**
   * Brings partitions up, and resolves with those that are being read. It is called again for the others,
   * and after a rejection also for partitions that are up already.
   */
  acquire(records: PartitionRecord[]): Promise<readonly number[]>;
  /**
   * Stops reading partitions that another worker is to take over, and resolves with those of which all that
   * was read has landed and is checkpointed. It is called again for the others; one that this worker keeps
   * after all is acquired again.
   * @param isLast true if the worker ends, so that it is not called again
   */
  release(partitions: number[], isLast: boolean): Promise<readonly number[]>;
  /** Drops a partition that another worker has taken over, at once and without writing anything. */
  lose(partition: number): void;
}
