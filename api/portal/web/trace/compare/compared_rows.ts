// The rows of a comparison that are shown: all of them, or those that changed with the rows above
// them, and between them how many were left out. Pure.
import type { Alignment } from './align.ts';

export type RowState = 'same' | 'changed' | 'left' | 'right';

/** Returns what became of a row. */
export function stateOf({ left, right, changes }: Alignment, row: number): RowState {
  if ((left[row] ?? -1) < 0) return 'right';
  if ((right[row] ?? -1) < 0) return 'left';
  return changes[row] === 0 ? 'same' : 'changed';
}

/** A row by its index, or a stretch of unchanged rows. */
export type ShownRow = { row: number } | { from: number; to: number };

/** Returns how many rows of each state there are. */
export function countStates(alignment: Alignment): Record<RowState, number> {
  const counts: Record<RowState, number> = { same: 0, changed: 0, left: 0, right: 0 };
  for (let row = 0; row < alignment.size; row += 1) counts[stateOf(alignment, row)] += 1;
  return counts;
}

/**
 * Returns the rows of the page.
 * @param opened first rows of the stretches that were unfolded; null: every row is shown
 * @param kept row that is shown though nothing changed; -1 for none
 */
export function shownRows(alignment: Alignment, opened: ReadonlySet<number> | null, kept = -1): ShownRow[] {
  const { size, parent } = alignment;
  const isShown = new Uint8Array(size).fill(opened === null ? 1 : 0);
  for (let row = size - 1; row >= 0 && opened !== null; row -= 1) {
    if (row === kept || stateOf(alignment, row) !== 'same') isShown[row] = 1;
    const above = parent[row] ?? -1;
    if (isShown[row] === 1 && above >= 0) isShown[above] = 1;
  }
  const shown: ShownRow[] = [];
  for (let row = 0; row < size; row += 1) {
    if (isShown[row] === 1) {
      shown.push({ row });
      continue;
    }
    const from = row;
    while (row + 1 < size && isShown[row + 1] !== 1) row += 1;
    if (opened?.has(from) === true) for (let i = from; i <= row; i += 1) shown.push({ row: i });
    else shown.push({ from, to: row + 1 });
  }
  return shown;
}
