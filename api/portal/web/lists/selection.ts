// The selected rows of a list: ids, and the row from which a range is taken. Ids outlive the pages
// that brought them, so scrolling away keeps a selection.

/** Traces that can be selected; an export takes them one after another. */
export const SELECTED_MAX = 500;

export interface Selection {
  ids: ReadonlySet<string>;
  /** The row that was last selected by itself; a range begins there. */
  anchor: string | null;
}

export const NOTHING_SELECTED: Selection = { ids: new Set(), anchor: null };

/** Returns the selection with one row added or taken out; at the maximum a row is only taken out. */
export function toggled(selection: Selection, id: string): Selection {
  const ids = new Set(selection.ids);
  if (!ids.delete(id) && ids.size < SELECTED_MAX) ids.add(id);
  return { ids, anchor: id };
}

/** Returns the selection with all rows between the anchor and this row added, in the order of the list. */
export function extended(selection: Selection, order: readonly string[], id: string): Selection {
  const to = order.indexOf(id);
  if (to === -1) return selection;
  const from = selection.anchor === null ? -1 : order.indexOf(selection.anchor);
  const [first, last] = from === -1 ? [to, to] : from < to ? [from, to] : [to, from];
  const ids = new Set(selection.ids);
  for (const each of order.slice(first, last + 1)) if (ids.size < SELECTED_MAX) ids.add(each);
  return { ids, anchor: selection.anchor !== null && from !== -1 ? selection.anchor : id };
}
