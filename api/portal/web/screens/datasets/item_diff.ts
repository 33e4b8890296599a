// Compares the items of two versions: the shortest edit script over whole items, the order of keys
// ignored. An item that stands in the place of another one is changed. Pure but for the clock.
import { deadlineIn, editScript } from '../../diff/edits.ts';
import type { NewItem } from './new_item.ts';

const EDITS_MAX = 5000;
const MS_MAX = 500;

export interface ItemPair {
  /** Index of the item in its version; null for an item that the version lacks. */
  left: number | null;
  right: number | null;
}

/** Returns JSON with the keys of every object sorted, so that equal items have equal texts. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, held: unknown) =>
    typeof held === 'object' && held !== null && !Array.isArray(held)
      ? Object.fromEntries(Object.entries(held).sort(([a], [b]) => (a < b ? -1 : 1)))
      : held,
  );
}

const textOf = ({ input, expected, metadata }: NewItem): string => canonical([input, expected, metadata]);

/** Returns the items that differ; null if the versions differ too much to be compared. */
export function changedItems(left: readonly NewItem[], right: readonly NewItem[]): ItemPair[] | null {
  const script = editScript(left.map(textOf), right.map(textOf), EDITS_MAX, deadlineIn(MS_MAX));
  if (script === null) return null;
  return script.flatMap(({ equal, left: a, left_end, right: b, right_end }) =>
    equal
      ? []
      : Array.from({ length: Math.max(left_end - a, right_end - b) }, (_, i) => ({
          left: a + i < left_end ? a + i : null,
          right: b + i < right_end ? b + i : null,
        })),
  );
}
