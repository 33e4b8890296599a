// Decides which live worker owns a partition. Every worker computes the same from the same list.

export interface Sharing {
  /** Ids of the live workers, sorted. */
  live: readonly string[];
  partitions: number;
  /** True to share contiguous ranges of partitions, false to deal the partitions out in turn. */
  isRanged: boolean;
}

/**
 * Returns the worker that owns a partition; undefined without a live worker. The numbers of
 * partitions of two workers differ by one at most.
 */
export function ownerOf(partition: number, { live, partitions, isRanged }: Sharing): string | undefined {
  return live[isRanged ? Math.floor((partition * live.length) / partitions) : partition % live.length];
}
