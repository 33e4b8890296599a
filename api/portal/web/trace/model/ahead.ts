// Which span the person will probably select next, so that its texts can be asked for ahead.

/**
 * Returns the row that follows the selected one in the direction of the last move.
 * @param before row that was selected before; itself or a row that is not shown on opening
 * @returns null at the end of the rows
 */
export function rowAhead(rows: Int32Array, before: number, selected: number): number | null {
  const at = rows.indexOf(selected);
  const from = rows.indexOf(before);
  if (at < 0) return null;
  return rows[from > at ? at - 1 : at + 1] ?? null;
}
