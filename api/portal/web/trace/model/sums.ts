// Times and sums of a tree: the own time of each span, and cost and tokens of each subtree.
import type { Tree } from './tree.ts';

/** Returns the duration of each span, less the time in which at least one of its children runs. */
export function ownTimes(tree: Tree): Float64Array {
  const own = tree.end.slice();
  for (let i = 0; i < tree.size; i += 1) own[i] = (own[i] ?? 0) - (tree.start[i] ?? 0);
  // End of the part of each span that its children have covered so far. Children come in order of
  // their start, so one pass finds the union.
  const covered = tree.start.slice();
  for (let i = 0; i < tree.size; i += 1) {
    const up = tree.parent[i] ?? -1;
    if (up < 0) continue;
    const from = Math.max(covered[up] ?? 0, tree.start[i] ?? 0);
    const to = Math.min(tree.end[up] ?? 0, tree.end[i] ?? 0);
    if (to <= from) continue;
    own[up] = (own[up] ?? 0) - (to - from);
    covered[up] = to;
  }
  return own;
}

/** Returns the sum of a column over each span and everything below it. Usage is counted once, so sums of sums are right. */
export function subtreeSums(tree: Tree, column: Float64Array): Float64Array {
  const sums = column.slice();
  for (let i = tree.size - 1; i >= 0; i -= 1) {
    const up = tree.parent[i] ?? -1;
    if (up >= 0) sums[up] = (sums[up] ?? 0) + (sums[i] ?? 0);
  }
  return sums;
}

/** Returns the earliest start and the latest end of each subtree; children may outlive their parents. */
export function subtreeRanges(tree: Tree): { from: Float64Array; to: Float64Array } {
  const from = tree.start.slice();
  const to = tree.end.slice();
  for (let i = tree.size - 1; i >= 0; i -= 1) {
    const up = tree.parent[i] ?? -1;
    if (up < 0) continue;
    from[up] = Math.min(from[up] ?? 0, from[i] ?? 0);
    to[up] = Math.max(to[up] ?? 0, to[i] ?? 0);
  }
  return { from, to };
}
