// The rows of one landing statement, one by one or in blocks. A piece of blocks is sent as it is, and is
// taken apart only if some of its rows must not be sent (again).
import { landingBody, type TableSpec, wireBytes } from '../../sql/stores/landing_tables.ts';
import { LIMITS } from '../limits.ts';
import type { PartitionEpoch } from './fences.ts';
import type { LandingRow } from './landing_row.ts';
import { type LandingBlock, rowsOf } from './landing_block.ts';

export interface LandingPiece {
  /** Number of its rows. */
  readonly count: number;
  rows(): LandingRow[];
  /**
   * Returns its rows as they travel.
   * @throws UnencodableCell if a row does not fit its table
   */
  body(): string | readonly Buffer[];
  /** Returns the piece without the rows of other owners, or of other epochs. */
  ownedBy(owned: readonly PartitionEpoch[]): LandingPiece;
}

/** Returns a piece of rows. */
export function pieceOfRows(spec: TableSpec, rows: LandingRow[]): LandingPiece {
  return {
    count: rows.length,
    rows: () => rows,
    body() {
      const wire = rows.map((row) => row.wire);
      const body = landingBody(spec, wire);
      return typeof body === 'string' ? body : [body];
    },
    ownedBy(owned) {
      const epochs = new Map(owned);
      const left = rows.filter((row) => epochs.get(row.partition) === row.epoch);
      return left.length === rows.length ? this : pieceOfRows(spec, left);
    },
  };
}

function pieceOfBlocks(spec: TableSpec, blocks: readonly LandingBlock[]): LandingPiece {
  return {
    count: blocks.reduce((sum, { count }) => sum + count, 0),
    rows: () => blocks.flatMap(rowsOf),
    body: () => blocks.map(({ bytes }) => bytes),
    ownedBy(owned) {
      const current = new Map(owned);
      const isOwned = blocks.every(({ epochs }) =>
        epochs.entries().every(([partition, epoch]) => current.get(partition) === epoch),
      );
      return isOwned ? this : pieceOfRows(spec, blocks.flatMap(rowsOf)).ownedBy(owned);
    },
  };
}

/**
 * Returns blocks and rows in pieces of bounded size. Rows without an event (of traces, usage and
 * scores) never start a new piece: they are small, and the two rows of a trace's pair must stay
 * together.
 */
export function piecesOf(
  spec: TableSpec,
  blocks: readonly LandingBlock[],
  rows: readonly LandingRow[],
): LandingPiece[] {
  const ofBlocks = chunks(
    blocks,
    ({ bytes }) => bytes.length,
    () => true,
  );
  const ofRows = chunks(
    rows,
    ({ wire }) => wireBytes(wire),
    ({ event }) => event !== null,
  );
  return [...ofBlocks.map((some) => pieceOfBlocks(spec, some)), ...ofRows.map((some) => pieceOfRows(spec, some))];
}

/** Splits items before one that may begin a chunk when the chunk has the bytes of an insert. */
function chunks<T>(items: readonly T[], bytesOf: (item: T) => number, mayBegin: (item: T) => boolean): T[][] {
  const all: T[][] = [];
  let chunk: T[] = [];
  let bytes = 0;
  for (const item of items) {
    if (bytes >= LIMITS.insert_bytes_max && mayBegin(item)) {
      all.push(chunk);
      chunk = [];
      bytes = 0;
    }
    chunk.push(item);
    bytes += bytesOf(item);
  }
  if (chunk.length > 0) all.push(chunk);
  return all;
}
