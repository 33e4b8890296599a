// Matches the children of two aligned spans: the shortest edit script over their keys, which keeps
// the order of both. Where several scripts are equally short, the one wins whose matched spans took
// similar times. Pure.

/** Cells of the table for one pair of lists. Longer lists are matched by the occurrences of each key. */
const CELLS_MAX = 250_000;
/** Cells of all tables of one alignment, so that it stays fast whatever the traces look like. */
export const CELLS_TOTAL_MAX = 5_000_000;

export interface Siblings {
  /** Kind and name of each span as a number; equal numbers may match. */
  keys: readonly number[];
  /** Milliseconds of each span. */
  durations: readonly number[];
}

/** Cells that an alignment may still spend. */
export interface CellBudget {
  left: number;
}

type Match = readonly [left: number, right: number];

/** Returns the matched positions in order. */
export function matchSiblings(left: Siblings, right: Siblings, budget: CellBudget): Match[] {
  const cells = left.keys.length * right.keys.length;
  if (cells <= CELLS_MAX && cells <= budget.left) {
    budget.left -= cells;
    return byTable(left, right);
  }
  return byOccurrence(left.keys, right.keys);
}

/** Returns how similar two durations are: 1 if they are equal, 0 if one of them is 0. */
function closeness(a: number, b: number): number {
  const most = Math.max(a, b);
  return most <= 0 ? 1 : Math.max(0, Math.min(a, b)) / most;
}

function byTable(left: Siblings, right: Siblings): Match[] {
  const [rows, columns] = [left.keys.length, right.keys.length];
  const width = columns + 1;
  // The durations of all matches together weigh less than one match, so the script stays the shortest.
  const weight = 1 / (2 * Math.min(rows, columns) + 1);
  const gain = (i: number, j: number): number =>
    left.keys[i] === right.keys[j] ? 1 + weight * closeness(left.durations[i] ?? 0, right.durations[j] ?? 0) : 0;
  const best = new Float64Array((rows + 1) * width);
  for (let i = rows - 1; i >= 0; i -= 1)
    for (let j = columns - 1; j >= 0; j -= 1) {
      const matched = gain(i, j);
      const skipped = Math.max(best[(i + 1) * width + j] ?? 0, best[i * width + j + 1] ?? 0);
      best[i * width + j] = matched === 0 ? skipped : Math.max(skipped, (best[(i + 1) * width + j + 1] ?? 0) + matched);
    }
  const matches: Match[] = [];
  for (let [i, j] = [0, 0]; i < rows && j < columns;) {
    const here = best[i * width + j];
    const matched = gain(i, j);
    if (matched > 0 && here === (best[(i + 1) * width + j + 1] ?? 0) + matched) {
      matches.push([i, j]);
      i += 1;
      j += 1;
    } else if (here === best[(i + 1) * width + j]) i += 1;
    else j += 1;
  }
  return matches;
}

/**
 * Matches the equal beginnings and ends of long lists, and between them the first occurrence of a
 * key with the first, the second with the second, as far as the order of both allows.
 */
function byOccurrence(left: readonly number[], right: readonly number[]): Match[] {
  const least = Math.min(left.length, right.length);
  let head = 0;
  while (head < least && left[head] === right[head]) head += 1;
  let tail = 0;
  while (tail < least - head && left[left.length - 1 - tail] === right[right.length - 1 - tail]) tail += 1;
  const places = new Map<number, number[]>();
  for (let j = right.length - tail - 1; j >= head; j -= 1) {
    const key = right[j] ?? -1;
    const list = places.get(key);
    if (list === undefined) places.set(key, [j]);
    else list.push(j);
  }
  const candidates: Match[] = [];
  for (let i = head; i < left.length - tail; i += 1) {
    const j = places.get(left[i] ?? -1)?.pop();
    if (j !== undefined) candidates.push([i, j]);
  }
  return [
    ...Array.from({ length: head }, (_, i): Match => [i, i]),
    ...longestRising(candidates),
    ...Array.from({ length: tail }, (_, i): Match => [left.length - tail + i, right.length - tail + i]),
  ];
}

/** Returns the longest part of a list in which the right positions rise too. */
function longestRising(matches: readonly Match[]): Match[] {
  const ends: number[] = [];
  const before = new Int32Array(matches.length).fill(-1);
  const rightOf = (at: number): number => matches[at]?.[1] ?? -1;
  for (let at = 0; at < matches.length; at += 1) {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (rightOf(ends[middle] ?? 0) < rightOf(at)) low = middle + 1;
      else high = middle;
    }
    before[at] = low > 0 ? (ends[low - 1] ?? -1) : -1;
    ends[low] = at;
  }
  const rising: Match[] = [];
  for (let at = ends.at(-1) ?? -1; at >= 0; at = before[at] ?? -1) {
    const match = matches[at];
    if (match !== undefined) rising.push(match);
  }
  return rising.reverse();
}
