// Idle time of a trace: the stretches in which no span works. Spans that only hold others do not count.
import { isWork, type Tree } from './tree.ts';

export interface Gaps {
  from: Float64Array;
  to: Float64Array;
}

/** Idle stretches of this share of the trace or more are offered for folding. */
const FOLDED_SHARE_MIN = 0.05;

/** Returns all stretches between the start and the end of the trace in which no span works, in order of time. */
export function idleGaps(tree: Tree): Gaps {
  const working: number[] = [];
  // A span without a duration, such as an event, runs at no time and does not cut a stretch in two.
  for (let i = 0; i < tree.size; i += 1) {
    if (isWork(tree, i) && (tree.end[i] ?? 0) > (tree.start[i] ?? 0)) working.push(i);
  }
  working.sort((a, b) => (tree.start[a] ?? 0) - (tree.start[b] ?? 0));
  const from: number[] = [];
  const to: number[] = [];
  let busyUntil = tree.from;
  const close = (at: number): void => {
    if (at <= busyUntil) return;
    from.push(busyUntil);
    to.push(at);
  };
  for (const i of working) {
    close(tree.start[i] ?? 0);
    busyUntil = Math.max(busyUntil, tree.end[i] ?? 0);
  }
  close(tree.to);
  return { from: Float64Array.from(from), to: Float64Array.from(to) };
}

/** Returns the idle stretches that are long enough to fold. */
export function foldableGaps(tree: Tree): Gaps {
  const all = idleGaps(tree);
  const least = (tree.to - tree.from) * FOLDED_SHARE_MIN;
  const isLong = (_: number, g: number): boolean => (all.to[g] ?? 0) - (all.from[g] ?? 0) > least;
  return { from: all.from.filter(isLong), to: all.to.filter(isLong) };
}
