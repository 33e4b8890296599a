// The shortest edit script between two lists, bounded in time and edits. Items are replaced by
// numbers first, so that a comparison of long texts costs no more than one of short ones. Pure but
// for the clock.
import { diffArrays } from 'diff';

/** A stretch of both lists: equal, or what stands on one side in the place of what stands on the other. */
export interface Stretch {
  equal: boolean;
  left: number;
  left_end: number;
  right: number;
  right_end: number;
}

/** Moment after which a comparison gives up, in milliseconds of performance.now(). */
export type Deadline = number;
export const deadlineIn = (ms: number): Deadline => performance.now() + ms;

/**
 * Returns the stretches of two lists in order; together they cover both.
 * @param edits_max insertions and deletions after which the comparison gives up
 * @returns null if the bound of edits or of time was reached
 */
export function editScript(
  left: readonly string[],
  right: readonly string[],
  edits_max: number,
  deadline: Deadline,
): Stretch[] | null {
  const numbers = new Map<string, number>();
  const numbered = (items: readonly string[]): number[] =>
    items.map((item) => {
      const known = numbers.get(item);
      if (known !== undefined) return known;
      numbers.set(item, numbers.size);
      return numbers.size - 1;
    });
  return numberScript(numbered(left), numbered(right), edits_max, deadline);
}

/** Returns the edit script of two lists of numbers. See `editScript`. */
function numberScript(left: number[], right: number[], edits_max: number, deadline: Deadline): Stretch[] | null {
  let head = 0;
  while (head < left.length && head < right.length && left[head] === right[head]) head += 1;
  let tail = 0;
  const most = Math.min(left.length, right.length) - head;
  while (tail < most && left[left.length - 1 - tail] === right[right.length - 1 - tail]) tail += 1;
  const timeout = deadline - performance.now();
  if (timeout <= 0) return null;
  const changes = diffArrays(left.slice(head, left.length - tail), right.slice(head, right.length - tail), {
    timeout,
    maxEditLength: edits_max,
  });
  if (changes === undefined) return null;
  const joined = new Stretches();
  joined.equal(head);
  for (const { added, removed, count } of changes) {
    if (added) joined.changed(0, count);
    else if (removed) joined.changed(count, 0);
    else joined.equal(count);
  }
  joined.equal(tail);
  return joined.list;
}

/** Joins neighbouring stretches of one kind. */
class Stretches {
  readonly list: Stretch[] = [];

  equal(count: number): void {
    this.#add(true, count, count);
  }

  changed(left: number, right: number): void {
    this.#add(false, left, right);
  }

  #add(equal: boolean, left: number, right: number): void {
    if (left === 0 && right === 0) return;
    const last = this.list.at(-1);
    if (last?.equal === equal) {
      last.left_end += left;
      last.right_end += right;
      return;
    }
    const from = { left: last?.left_end ?? 0, right: last?.right_end ?? 0 };
    this.list.push({ equal, ...from, left_end: from.left + left, right_end: from.right + right });
  }
}
