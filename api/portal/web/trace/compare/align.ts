// Aligns the spans of two traces: the roots of both first, then the children of every aligned pair by
// the shortest edit script over kind and name. A lone left and a lone right span of one kind between
// the same neighbours are one pair whose name changed. Every span stands in exactly one row, in the
// order of its trace. Nothing recurses. Pure.
import { childrenOf, nameOf, type Tree } from '../model/tree.ts';
import { type CellBudget, CELLS_TOTAL_MAX, matchSiblings, type Siblings } from './match_siblings.ts';
import { changesOf } from './span_changes.ts';

/** Rows in the order of the page: a row is followed by the rows of its children. One entry a row. */
export interface Alignment {
  readonly size: number;
  /** Index of the span in the left tree; -1 for a span that only the right trace has. */
  readonly left: Int32Array;
  readonly right: Int32Array;
  readonly depth: Int32Array;
  /** Row of the parent; -1 for roots. */
  readonly parent: Int32Array;
  /** Differences of a pair, as bits of CHANGES; 0 for an unchanged pair and for a span of one side. */
  readonly changes: Uint8Array;
}

interface Pending {
  left: number;
  right: number;
  parent: number;
}

interface Sides {
  left: Tree;
  right: Tree;
  leftKeys: Int32Array;
  rightKeys: Int32Array;
  budget: CellBudget;
}

/**
 * Aligns two traces.
 * @param threshold_percent change of a number beyond which a pair counts as changed
 */
export function alignTrees(left: Tree, right: Tree, threshold_percent: number): Alignment {
  const ids = new Map<string, number>();
  const sides: Sides = {
    left,
    right,
    leftKeys: keysOf(left, ids),
    rightKeys: keysOf(right, ids),
    budget: { left: CELLS_TOTAL_MAX },
  };
  const most = left.size + right.size;
  const rows = {
    left: new Int32Array(most).fill(-1),
    right: new Int32Array(most).fill(-1),
    depth: new Int32Array(most),
    parent: new Int32Array(most).fill(-1),
    changes: new Uint8Array(most),
  };
  const isSignificant = { threshold_percent, least_ms: Math.max(left.to - left.from, right.to - right.from) / 100 };
  let size = 0;
  const stack: Pending[] = childPairs(sides, -1, -1, -1).reverse();
  for (let pair = stack.pop(); pair !== undefined; pair = stack.pop()) {
    rows.left[size] = pair.left;
    rows.right[size] = pair.right;
    rows.parent[size] = pair.parent;
    rows.depth[size] = pair.parent < 0 ? 0 : (rows.depth[pair.parent] ?? 0) + 1;
    if (pair.left >= 0 && pair.right >= 0)
      rows.changes[size] = changesOf(left, pair.left, right, pair.right, isSignificant);
    const children = childPairs(sides, pair.left, pair.right, size);
    for (let at = children.length - 1; at >= 0; at -= 1) {
      const child = children[at];
      if (child !== undefined) stack.push(child);
    }
    size += 1;
  }
  return {
    size,
    left: rows.left.slice(0, size),
    right: rows.right.slice(0, size),
    depth: rows.depth.slice(0, size),
    parent: rows.parent.slice(0, size),
    changes: rows.changes.slice(0, size),
  };
}

/** Returns kind and name of every span as a number that both traces share. */
function keysOf(tree: Tree, ids: Map<string, number>): Int32Array {
  return Int32Array.from(tree.kind, (kind, i) => {
    const key = `${kind} ${nameOf(tree, i)}`;
    const known = ids.get(key);
    if (known !== undefined) return known;
    ids.set(key, ids.size);
    return ids.size - 1;
  });
}

/** Returns the children of a row as pairs, in order; of the roots for a row of -1. */
function childPairs(sides: Sides, left: number, right: number, parent: number): Pending[] {
  const isRoot = parent < 0;
  const gone = isRoot || left >= 0 ? childrenOf(sides.left, left) : [];
  const come = isRoot || right >= 0 ? childrenOf(sides.right, right) : [];
  if (come.length === 0) return gone.map((i) => ({ left: i, right: -1, parent }));
  if (gone.length === 0) return come.map((i) => ({ left: -1, right: i, parent }));
  const matches = matchSiblings(
    siblingsOf(sides.left, sides.leftKeys, gone),
    siblingsOf(sides.right, sides.rightKeys, come),
    sides.budget,
  );
  const pairs: Pending[] = [];
  let [a, b] = [0, 0];
  const between = (to_a: number, to_b: number): void => {
    const [only, other] = [gone[a] ?? -1, come[b] ?? -1];
    if (to_a - a === 1 && to_b - b === 1 && sides.left.kind[only] === sides.right.kind[other]) {
      pairs.push({ left: only, right: other, parent });
      return;
    }
    for (let i = a; i < to_a; i += 1) pairs.push({ left: gone[i] ?? -1, right: -1, parent });
    for (let i = b; i < to_b; i += 1) pairs.push({ left: -1, right: come[i] ?? -1, parent });
  };
  for (const [i, j] of matches) {
    between(i, j);
    pairs.push({ left: gone[i] ?? -1, right: come[j] ?? -1, parent });
    [a, b] = [i + 1, j + 1];
  }
  between(gone.length, come.length);
  return pairs;
}

function siblingsOf(tree: Tree, keys: Int32Array, children: readonly number[]): Siblings {
  return {
    keys: children.map((i) => keys[i] ?? -1),
    durations: children.map((i) => (tree.end[i] ?? 0) - (tree.start[i] ?? 0)),
  };
}
