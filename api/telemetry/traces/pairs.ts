// Rows of a trace may be pairs that ClickHouse has not yet collapsed: a replaced state has a row
// with each sign. These functions take rows in the order of a list, where the rows of one state
// stand together, and return each trace once.
import type { TraceRow } from './store.ts';

/** Rows that a read takes beyond the page, for pairs that are not yet collapsed. */
const PAIR_ROWS_MIN = 20;
const PAIR_ROWS_MAX = 5000;
/** Rows that a first read takes beyond the page, times its length, where traces are left out. */
const LEFT_OUT = 4;

/** Returns the number of rows that a read takes beyond the wanted traces. */
export const pairRows = (wanted: number): number => Math.max(PAIR_ROWS_MIN, Math.ceil(wanted / 10));

/** Row after which a read begins. */
export type Place = Pick<TraceRow, 'started_ms' | 'trace_key' | 'version' | 'rank'>;

/**
 * Reads until there are as many traces as wanted, or the rows end. With many uncollapsed pairs,
 * each read takes more rows.
 *
 * @param read returns at most this many rows after a place
 * @param keep leaves out rows of traces that are not wanted; the more it does, the more rows a read takes
 */
export async function readLive(
  read: (after: Place | null, rows: number) => Promise<TraceRow[]>,
  from: Place | null,
  wanted: number,
  keep?: (rows: readonly TraceRow[]) => readonly TraceRow[],
): Promise<{ live: TraceRow[]; place: Place | null }> {
  const found: TraceRow[] = [];
  let place = from;
  let spare = keep === undefined ? pairRows(wanted) : wanted * LEFT_OUT;
  for (let cut = true; cut && found.length < wanted; spare = Math.min(spare * 4, PAIR_ROWS_MAX)) {
    const rowsMax = wanted - found.length + spare;
    const rows = await read(place, rowsMax);
    cut = rows.length === rowsMax;
    const { live, last } = foldPairs(rows, cut);
    found.push(...(keep?.(live) ?? live));
    place = last ?? place;
  }
  return { live: found, place };
}

/**
 * Adds up the signs of the rows of each state of a trace, and returns the states that remain.
 *
 * @param cut true if the rows end because of their limit: the partner of the last row may be
 * missing, so the row is left to the next read
 * @returns last: the last row that was settled
 */
export function foldPairs(rows: readonly TraceRow[], cut: boolean): { live: TraceRow[]; last: TraceRow | null } {
  const live: TraceRow[] = [];
  let last: TraceRow | null = null;
  for (let start = 0; start < rows.length;) {
    const first = rows[start];
    if (first === undefined) break;
    let end = start;
    let sum = 0;
    for (let row = rows[end]; row?.trace_key === first.trace_key && row.version === first.version; row = rows[++end])
      sum += row.sign;
    if (cut && end === rows.length) break;
    if (sum > 0) live.push(first);
    last = first;
    start = end;
  }
  return { live, last };
}
