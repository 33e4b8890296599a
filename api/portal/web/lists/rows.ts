// The rows of the trace list: pages as the cursor brings them, and changes as the live stream brings
// them. A row that is shown keeps its place when it changes, and rows that are new wait until they are
// asked for, so nothing moves under the pointer. Holds at most ROWS_MAX rows.

/** Rows that a list keeps; beyond them the histogram leads to another time. */
export const ROWS_MAX = 5_000;
/** New rows that wait; of more, only their number is kept. */
const WAITING_MAX = 1_000;

export interface Row {
  trace_id: string;
  started_at: string;
}

export interface Rows<T extends Row> {
  list: readonly T[];
  /** New rows that are not shown yet, newest first. */
  waiting: readonly T[];
  /** Number of new rows beyond those in waiting: the stream dropped them, or the bound did. */
  unseen: number;
  /** Number of new rows that were shown, by which the list has grown since it was counted. */
  added: number;
}

export const noRows = <T extends Row>(): Rows<T> => ({ list: [], waiting: [], unseen: 0, added: 0 });

/** Returns the rows of all pages, each trace once and in the order of the first page that has it. */
export function rowsOfPages<T extends Row>(pages: readonly (readonly T[])[]): T[] {
  const rows = new Map<string, T>();
  for (const page of pages)
    for (const row of page) {
      if (rows.size >= ROWS_MAX) return [...rows.values()];
      if (!rows.has(row.trace_id)) rows.set(row.trace_id, row);
    }
  return [...rows.values()];
}

/**
 * Returns the rows with a batch of changed traces: those in the list or waiting are replaced in place,
 * others wait.
 * @param dropped number of traces that the stream left out
 */
export function withBatch<T extends Row>(rows: Rows<T>, batch: readonly T[], dropped: number): Rows<T> {
  const changed = new Map(batch.map((row) => [row.trace_id, row]));
  const take = (row: T): T => {
    const next = changed.get(row.trace_id);
    changed.delete(row.trace_id);
    return next ?? row;
  };
  const list = changed.size === 0 ? rows.list : rows.list.map(take);
  const known = rows.waiting.map(take);
  const waiting = [...changed.values(), ...known].toSorted(newestFirst);
  return {
    ...rows,
    list,
    waiting: waiting.slice(0, WAITING_MAX),
    unseen: rows.unseen + dropped + Math.max(0, waiting.length - WAITING_MAX),
  };
}

/**
 * Returns the rows with the waiting ones shown by their start time. A waiting row that is older than
 * the last row of an incomplete list is left out: the page that it belongs to brings it.
 */
export function withWaitingShown<T extends Row>(rows: Rows<T>, complete: boolean): Rows<T> {
  if (rows.waiting.length === 0) return rows;
  const last = rows.list.at(-1);
  const shown = rows.waiting.filter((row) => complete || last === undefined || row.started_at >= last.started_at);
  const list = [...shown, ...rows.list].toSorted(newestFirst).slice(0, ROWS_MAX);
  return { list, waiting: [], unseen: rows.unseen, added: rows.added + rows.waiting.length };
}

/** Returns the number that the list announces as new. */
export const newCount = (rows: Rows<Row>): number => rows.waiting.length + rows.unseen;

/** Orders by start time, newest first; sorting is stable, so equal times keep their order. */
function newestFirst(a: Row, b: Row): number {
  return a.started_at < b.started_at ? 1 : a.started_at > b.started_at ? -1 : 0;
}
