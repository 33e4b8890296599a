// Groups of consecutive siblings of one kind and name, which the waterfall shows as one row.
import { hasFailed, type Tree } from './tree.ts';

/** As many consecutive siblings of one kind and name fold into one row. */
export const FOLDED_SIBLINGS_MIN = 5;

export interface Groups {
  /** First and last member of each group. */
  first: Int32Array;
  last: Int32Array;
  members: Int32Array;
  /** Group of each span; -1 for a span in none. */
  groupOf: Int32Array;
}

/** Finds the groups; a group never mixes parents. */
export function findGroups(tree: Tree): Groups {
  const groupOf = new Int32Array(tree.size).fill(-1);
  const first: number[] = [];
  const last: number[] = [];
  const members: number[] = [];
  // The newest run of alike siblings below each span; index 0 is the one of the roots.
  const runFirst = new Int32Array(tree.size + 1).fill(-1);
  const runLast = new Int32Array(tree.size + 1).fill(-1);
  const runLength = new Int32Array(tree.size + 1);
  const close = (slot: number): void => {
    if ((runLength[slot] ?? 0) < FOLDED_SIBLINGS_MIN) return;
    const from = runFirst[slot] ?? 0;
    const to = runLast[slot] ?? 0;
    for (let i = from; i <= to; i = tree.subtreeEnd[i] ?? tree.size) groupOf[i] = first.length;
    first.push(from);
    last.push(to);
    members.push(runLength[slot] ?? 0);
  };
  for (let i = 0; i < tree.size; i += 1) {
    const slot = (tree.parent[i] ?? -1) + 1;
    const before = runLast[slot] ?? -1;
    const isAlike = before >= 0 && tree.kind[before] === tree.kind[i] && tree.name[before] === tree.name[i];
    if (!isAlike) {
      close(slot);
      runFirst[slot] = i;
      runLength[slot] = 0;
    }
    runLast[slot] = i;
    runLength[slot] = (runLength[slot] ?? 0) + 1;
  }
  for (let slot = 0; slot <= tree.size; slot += 1) close(slot);
  return { first: Int32Array.from(first), last: Int32Array.from(last), members: Int32Array.from(members), groupOf };
}

/** Values in the row of a group: its extent in time and sums over its members' subtrees. */
export interface GroupSums {
  from: number;
  to: number;
  cost: number;
  inputTokens: number;
  outputTokens: number;
  /** Time in which at least one member runs. */
  busy: number;
  failed: number;
}

export interface SubtreeColumns {
  cost: Float64Array;
  inputTokens: Float64Array;
  outputTokens: Float64Array;
}

export function sumGroup(tree: Tree, groups: Groups, group: number, sums: SubtreeColumns): GroupSums {
  const end = tree.subtreeEnd[groups.last[group] ?? 0] ?? 0;
  const result = { from: Infinity, to: -Infinity, cost: 0, inputTokens: 0, outputTokens: 0, busy: 0, failed: 0 };
  let covered = -Infinity;
  for (let i = groups.first[group] ?? end; i < end; i = tree.subtreeEnd[i] ?? end) {
    const from = tree.start[i] ?? 0;
    const to = tree.end[i] ?? 0;
    result.from = Math.min(result.from, from);
    result.to = Math.max(result.to, to);
    result.busy += Math.max(0, to - Math.max(from, covered));
    covered = Math.max(covered, to);
    result.cost += sums.cost[i] ?? 0;
    result.inputTokens += sums.inputTokens[i] ?? 0;
    result.outputTokens += sums.outputTokens[i] ?? 0;
    if (hasFailed(tree, i)) result.failed += 1;
  }
  return result;
}
