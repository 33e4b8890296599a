// Everything that the trace screen computes from an outline, once for each outline. Arrays have one
// entry a span of the tree.
import { type Cause, findCause, recoveredErrors, rootOf } from './cause.ts';
import { type CriticalPath, criticalPath } from './critical_path.ts';
import { findGroups, type Groups, type GroupSums, sumGroup } from './folding.ts';
import { foldableGaps, type Gaps } from './idle.ts';
import type { Outline } from './outline.ts';
import { type Places, placesOf } from './rows.ts';
import { ownTimes, subtreeSums } from './sums.ts';
import { buildTree, hasFailed, type Tree } from './tree.ts';
import { costParts, type Part, timeParts } from './where.ts';

export interface TraceModel {
  outline: Outline;
  tree: Tree;
  root: number;
  own: Float64Array;
  cost: Float64Array;
  inputTokens: Float64Array;
  outputTokens: Float64Array;
  groups: Groups;
  groupSums: readonly GroupSums[];
  places: Places;
  path: CriticalPath;
  gaps: Gaps;
  cause: Cause | null;
  recovered: readonly number[];
  /** Failed spans in order. */
  failed: Int32Array;
  timeParts: readonly Part[];
  costParts: readonly Part[];
}

export function buildModel(outline: Outline): TraceModel {
  const tree = buildTree(outline);
  const root = rootOf(tree, outline.trace.root_span_name);
  const cost = subtreeSums(tree, tree.cost);
  const inputTokens = subtreeSums(tree, tree.inputTokens);
  const outputTokens = subtreeSums(tree, tree.outputTokens);
  const groups = findGroups(tree);
  const path = criticalPath(tree);
  const cause = findCause(tree, root);
  const failed: number[] = [];
  for (let i = 0; i < tree.size; i += 1) if (hasFailed(tree, i)) failed.push(i);
  return {
    outline,
    tree,
    root,
    own: ownTimes(tree),
    cost,
    inputTokens,
    outputTokens,
    groups,
    groupSums: Array.from(groups.first, (_, g) => sumGroup(tree, groups, g, { cost, inputTokens, outputTokens })),
    places: placesOf(tree, groups),
    path,
    gaps: foldableGaps(tree),
    cause,
    recovered: recoveredErrors(tree, cause),
    failed: Int32Array.from(failed),
    timeParts: timeParts(tree, path),
    costParts: costParts(tree),
  };
}
