// Finds the span that made a trace fail, and the failures that the trace recovered from.
import { childrenOf, hasFailed, type Tree } from './tree.ts';

export interface Cause {
  /** The span in which the trace failed. */
  span: number;
  /** Failed spans from the root down to the cause, the cause last. */
  chain: readonly number[];
}

/** Returns the root of the trace: its first span without a parent; -1 if the root has not arrived. */
export function rootOf(tree: Tree, rootName: string | null): number {
  if (rootName === null) return -1;
  let first = -1;
  for (const i of childrenOf(tree, -1)) {
    if (tree.names[tree.name[i] ?? -1] === rootName) return i;
    if (first < 0) first = i;
  }
  return first;
}

/** Returns the failed child of a span that ended last; -1 if none failed. */
function lastFailedChild(tree: Tree, parent: number): number {
  let last = -1;
  for (const i of childrenOf(tree, parent)) {
    if (!hasFailed(tree, i)) continue;
    if (last < 0 || (tree.end[i] ?? 0) >= (tree.end[last] ?? 0)) last = i;
  }
  return last;
}

/** Returns the innermost failed spans: those below which no child failed. */
function innermostFailures(tree: Tree): number[] {
  const failures: number[] = [];
  for (let i = 0; i < tree.size; i += 1) {
    if (hasFailed(tree, i) && lastFailedChild(tree, i) < 0) failures.push(i);
  }
  return failures;
}

/**
 * Finds the cause of a failed trace. From a failed root the search goes down to the failed child
 * that ended last until there is none. Without a root, the cause is the innermost failure that
 * ended last. A trace whose root succeeded has no cause.
 *
 * @param root from rootOf()
 */
export function findCause(tree: Tree, root: number): Cause | null {
  if (root >= 0) {
    if (!hasFailed(tree, root)) return null;
    const chain: number[] = [];
    for (let i = root; i >= 0; i = lastFailedChild(tree, i)) chain.push(i);
    return { span: chain.at(-1) ?? root, chain };
  }
  let span = -1;
  for (const i of innermostFailures(tree)) if (span < 0 || (tree.end[i] ?? 0) >= (tree.end[span] ?? 0)) span = i;
  if (span < 0) return null;
  const chain: number[] = [];
  for (let i = span; i >= 0 && hasFailed(tree, i); i = tree.parent[i] ?? -1) chain.unshift(i);
  return { span, chain };
}

/** Returns the innermost failures that are not the cause: the trace went on after them. */
export const recoveredErrors = (tree: Tree, cause: Cause | null): number[] =>
  innermostFailures(tree).filter((i) => i !== cause?.span);
