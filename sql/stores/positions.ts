// Log positions of several partitions as parameters of one statement, which reads the rows of each
// partition from its own position on.
import { z } from 'zod';

/** A partition, and the log position from which on its rows are meant. */
export interface PartitionFrom {
  partition: number;
  from: number;
}

export const positionsShape = z.object({
  partitions: z.array(z.int()),
  positions: z.array(z.int()),
  least: z.int(),
});

/** Twin of sql/queries/landing/from_positions.sql for statements that are written in TypeScript. */
export const FROM_POSITIONS =
  'partition IN {partitions:Array(UInt16)} AND log_seq >= {least:UInt64} AND log_seq >= transform(partition, {partitions:Array(UInt16)}, {positions:Array(UInt64)}, toUInt64(0))';

/**
 * Returns the parameters for these partitions.
 *
 * @param all one partition at least
 */
export const positionParams = (all: readonly PartitionFrom[]): z.input<typeof positionsShape> => ({
  partitions: all.map(({ partition }) => partition),
  positions: all.map(({ from }) => from),
  least: Math.min(...all.map(({ from }) => from)),
});
