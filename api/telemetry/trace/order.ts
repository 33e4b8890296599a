// Orders the spans of a trace depth first. In: ids and parents in the order of the spans' start.
// Out: indexes. Pure; linear in the number of spans, whatever their parents are.

/**
 * Returns the index of each span's parent; -1 for a root, and for a parent that is not among the
 * spans. Of several spans with one id the first is the parent.
 */
export function parentsOf(ids: readonly string[], parentIds: readonly string[]): Int32Array {
  const first = new Map<string, number>();
  for (const [span, id] of ids.entries()) if (!first.has(id)) first.set(id, span);
  const parents = new Int32Array(ids.length);
  for (const [span, id] of parentIds.entries()) {
    const parent = id === '' ? -1 : (first.get(id) ?? -1);
    parents[span] = parent === span ? -1 : parent;
  }
  breakCircles(parents);
  return parents;
}

/** Makes the first span of each circle of parents a root, so that every span has a root above it. */
function breakCircles(parents: Int32Array): void {
  /** 0: not seen, otherwise the walk in which the span was seen. */
  const seen = new Int32Array(parents.length);
  for (let start = 0; start < parents.length; start++) {
    let span = start;
    while (span !== -1 && seen[span] === 0) {
      seen[span] = start + 1;
      span = parents[span] ?? -1;
    }
    if (span !== -1 && seen[span] === start + 1) parents[firstOf(parents, span)] = -1;
  }
}

/** Returns the first span of the circle that `member` is in. */
function firstOf(parents: Int32Array, member: number): number {
  let first = member;
  for (let span = parents[member] ?? -1; span !== member; span = parents[span] ?? -1) first = Math.min(first, span);
  return first;
}

/** Returns the spans in order: each is followed by its children, siblings keep their order. */
export function depthFirst(parents: Int32Array): Int32Array {
  const count = parents.length;
  // Lists of siblings: the first child of each span (at 0 the first root), and the next sibling.
  const firstChild = new Int32Array(count + 1).fill(-1);
  const next = new Int32Array(count).fill(-1);
  for (let span = count - 1; span >= 0; span--) {
    const list = (parents[span] ?? -1) + 1;
    next[span] = firstChild[list] ?? -1;
    firstChild[list] = span;
  }
  const order = new Int32Array(count);
  let filled = 0;
  let span = firstChild[0] ?? -1;
  while (span !== -1) {
    order[filled++] = span;
    let follower = firstChild[span + 1] ?? -1;
    for (let at = span; follower === -1 && at !== -1; at = parents[at] ?? -1) follower = next[at] ?? -1;
    span = follower;
  }
  return order;
}
