// What changed between two aligned spans, as far as an outline tells. Texts are compared when a pair
// is opened. Pure.
import { modelOf, nameOf, type Tree } from '../model/tree.ts';

/** Facts of a span, as bits. */
export const CHANGES = { name: 1, outcome: 2, model: 4, duration: 8, tokens: 16, cost: 32 } as const;
export type Change = keyof typeof CHANGES;

/** When a number counts as changed. */
export interface Significance {
  /** Percent of the left value. */
  threshold_percent: number;
  /** Differences of durations below this are noise, milliseconds. */
  least_ms: number;
}

/** Returns the changes of a pair as bits. */
export function changesOf(
  left: Tree,
  a: number,
  right: Tree,
  b: number,
  { threshold_percent, least_ms }: Significance,
): number {
  const durations = [(left.end[a] ?? 0) - (left.start[a] ?? 0), (right.end[b] ?? 0) - (right.start[b] ?? 0)] as const;
  const differs = ([from, to]: readonly [number, number]): boolean =>
    Math.abs(to - from) * 100 > Math.abs(from) * threshold_percent;
  const tokens = (tree: Tree, i: number): string => `${tree.inputTokens[i] ?? 0} ${tree.outputTokens[i] ?? 0}`;
  const found: Record<Change, boolean> = {
    name: nameOf(left, a) !== nameOf(right, b),
    outcome: left.outcome[a] !== right.outcome[b],
    model: modelOf(left, a) !== modelOf(right, b),
    duration: Math.abs(durations[1] - durations[0]) >= Math.max(1, least_ms) && differs(durations),
    tokens: tokens(left, a) !== tokens(right, b),
    cost: differs([left.cost[a] ?? 0, right.cost[b] ?? 0]),
  };
  return (Object.keys(CHANGES) as Change[]).reduce((bits, change) => bits | (found[change] ? CHANGES[change] : 0), 0);
}

/** Returns the names of the changes of a pair. */
export const changeNames = (bits: number): Change[] =>
  (Object.keys(CHANGES) as Change[]).filter((change) => (bits & CHANGES[change]) !== 0);
