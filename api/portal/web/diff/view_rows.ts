// Arranges the rows of a comparison for the view: in one column or two, with long stretches of equal
// lines folded. Pure.
import type { DiffRow } from './shape.ts';

/** Equal lines that stay in sight around a change. */
const CONTEXT = 3;
/** Shorter stretches are not folded. */
const FOLDED_MIN = 4;

/** Returns the rows for one column: of a stretch of changes first all lines of the left, then all of the right. */
export function inOneColumn(rows: readonly DiffRow[]): DiffRow[] {
  const list: DiffRow[] = [];
  let come: DiffRow[] = [];
  for (const row of rows) {
    if (row.kind === 'same') {
      list.push(...come, row);
      come = [];
      continue;
    }
    if (row.left !== null) list.push({ kind: 'removed', left: row.left, right: null });
    if (row.right !== null) come.push({ kind: 'added', left: null, right: row.right });
  }
  return [...list, ...come];
}

/** A row by its index, or a folded stretch of rows. */
export type ViewRow = { at: number } | { from: number; to: number };

/**
 * Returns what the view shows.
 * @param opened first rows of the stretches that were unfolded; null: nothing is folded
 */
export function foldRows(rows: readonly DiffRow[], opened: ReadonlySet<number> | null): ViewRow[] {
  const shown: ViewRow[] = [];
  for (let at = 0; at < rows.length;) {
    const end = Math.max(endOfSame(rows, at), at + 1);
    const from = at === 0 ? 0 : at + CONTEXT;
    const to = end === rows.length ? end : end - CONTEXT;
    if (opened !== null && to - from >= FOLDED_MIN && !opened.has(from)) {
      for (; at < from; at += 1) shown.push({ at });
      shown.push({ from, to });
      at = to;
    }
    for (; at < end; at += 1) shown.push({ at });
  }
  return shown;
}

function endOfSame(rows: readonly DiffRow[], from: number): number {
  let end = from;
  while (rows[end]?.kind === 'same') end += 1;
  return end;
}
