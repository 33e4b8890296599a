// Rows of spans or of texts as one block, encoded as soon as a slice of the log is decided: the
// objects of thousands of events that wait for a landing would be copied by every collection of
// garbage. Its rows can be had again, for a landing that has to tell them apart.
import type { Cells } from '../../sql/client/native_block.ts';
import { encodeBlock, UnencodableCell } from '../../sql/client/native_block.ts';
import { decodeBlock } from '../../sql/client/native_rows.ts';
import { type BlockSpec, positionOf } from '../../sql/stores/landing_tables.ts';
import type { LogPosition, LoggedEvent } from '../stage.ts';
import { type LandingRow, rowKey } from './landing_row.ts';

/** Returns the event of a log position as it was logged; null if it is not known any more. */
export type EventOf = (position: LogPosition) => LoggedEvent | null;

export interface LandingBlock {
  readonly spec: BlockSpec;
  readonly bytes: Buffer;
  /** Number of its rows. */
  readonly count: number;
  /** Partitions of its rows, each with the epoch under which they were made. */
  readonly epochs: ReadonlyMap<number, number>;
  readonly eventOf: EventOf;
}

/** Returns the rows of a block one by one. */
export const rowsOf = ({ spec, bytes, epochs, eventOf }: LandingBlock): LandingRow[] =>
  looseRows(spec, decodeBlock(spec.block, bytes), epochs, eventOf);

/** Collects the rows of one table. */
export class BlockBuilder {
  readonly #spec: BlockSpec;
  readonly #eventOf: EventOf;
  #cells: Cells[] = [];
  #epochs = new Map<number, number>();

  constructor(spec: BlockSpec, eventOf: EventOf) {
    this.#spec = spec;
    this.#eventOf = eventOf;
  }

  add(cells: Cells, partition: number, epoch: number): void {
    this.#cells.push(cells);
    this.#epochs.set(partition, epoch);
  }

  /**
   * Returns the rows that were added since the last call: as a block, or one by one if a cell does
   * not fit its column. The landing finds out which row that is.
   */
  take(): { blocks: LandingBlock[]; rows: LandingRow[] } {
    const [spec, eventOf, cells, epochs] = [this.#spec, this.#eventOf, this.#cells, this.#epochs];
    if (cells.length === 0) return { blocks: [], rows: [] };
    this.#cells = [];
    this.#epochs = new Map();
    try {
      const bytes = encodeBlock(spec.block, cells);
      return { blocks: [{ spec, bytes, count: cells.length, epochs, eventOf }], rows: [] };
    } catch (error) {
      if (!(error instanceof UnencodableCell)) throw error;
      return { blocks: [], rows: looseRows(spec, cells, epochs, eventOf) };
    }
  }
}

function looseRows(
  spec: BlockSpec,
  rows: readonly Cells[],
  epochs: ReadonlyMap<number, number>,
  eventOf: EventOf,
): LandingRow[] {
  return rows.map((wire) => {
    const { partition, log_seq, log_index, log_sub } = positionOf(spec, wire);
    return {
      wire,
      partition,
      epoch: epochs.get(partition) ?? 0,
      log_seq,
      key: rowKey(log_seq, log_index, log_sub),
      event: eventOf({ partition, log_seq, log_index }),
    };
  });
}
