// The visible rows of the waterfall: spans, and groups of alike siblings, less what is folded. A
// row is a number: a span's index, or the complement of a group's. All rows of 50,000 spans are
// computed in one pass; the screen mounts those in sight.
import type { Groups } from './folding.ts';
import type { Tree } from './tree.ts';

export const rowOfGroup = (group: number): number => ~group;
export const isGroupRow = (row: number): boolean => row < 0;
export const groupOfRow = (row: number): number => ~row;

/** Rows that the person folded and unfolded. Spans begin unfolded, groups folded. */
export interface Folds {
  closedSpans: ReadonlySet<number>;
  openGroups: ReadonlySet<number>;
}

/** Levels, positions and sizes of sets, as a treegrid tells them to assistive technology. */
export interface Places {
  /** Level of a span's row, from 1; a member of a group stands one level below its group. */
  level: Int32Array;
  position: Int32Array;
  setSize: Int32Array;
  groupPosition: Int32Array;
  groupSetSize: Int32Array;
}

export function placesOf(tree: Tree, groups: Groups): Places {
  const { size } = tree;
  const places: Places = {
    level: new Int32Array(size),
    position: new Int32Array(size),
    setSize: new Int32Array(size),
    groupPosition: new Int32Array(groups.first.length),
    groupSetSize: new Int32Array(groups.first.length),
  };
  // Rows counted so far below each span, and in each group; slot 0 is that of the roots.
  const below = new Int32Array(size + 1);
  const inGroup = new Int32Array(groups.first.length);
  for (let i = 0; i < size; i += 1) {
    const slot = (tree.parent[i] ?? -1) + 1;
    const group = groups.groupOf[i] ?? -1;
    places.level[i] = (slot === 0 ? 0 : (places.level[slot - 1] ?? 0)) + (group < 0 ? 1 : 2);
    if (group < 0) places.position[i] = bump(below, slot);
    else {
      if (groups.first[group] === i) places.groupPosition[group] = bump(below, slot);
      places.position[i] = bump(inGroup, group);
    }
  }
  for (let i = 0; i < size; i += 1) {
    const group = groups.groupOf[i] ?? -1;
    const siblings = below[(tree.parent[i] ?? -1) + 1] ?? 0;
    places.setSize[i] = group < 0 ? siblings : (groups.members[group] ?? 0);
    if (group >= 0) places.groupSetSize[group] = siblings;
  }
  return places;
}

function bump(counts: Int32Array, at: number): number {
  const count = (counts[at] ?? 0) + 1;
  counts[at] = count;
  return count;
}

export function visibleRows(tree: Tree, groups: Groups, folds: Folds): Int32Array {
  const rows = new Int32Array(tree.size + groups.first.length);
  let count = 0;
  for (let i = 0; i < tree.size;) {
    const group = groups.groupOf[i] ?? -1;
    if (group >= 0 && groups.first[group] === i) {
      rows[count] = rowOfGroup(group);
      count += 1;
      if (!folds.openGroups.has(group)) {
        i = tree.subtreeEnd[groups.last[group] ?? i] ?? tree.size;
        continue;
      }
    }
    rows[count] = i;
    count += 1;
    i = folds.closedSpans.has(i) ? (tree.subtreeEnd[i] ?? tree.size) : i + 1;
  }
  return rows.slice(0, count);
}

/** Returns folds in which a span is visible: its ancestors and the groups around it are open. */
export function unfoldTo(tree: Tree, groups: Groups, folds: Folds, span: number): Folds {
  const closedSpans = new Set(folds.closedSpans);
  const openGroups = new Set(folds.openGroups);
  for (let i = span; i >= 0; i = tree.parent[i] ?? -1) {
    if (i !== span) closedSpans.delete(i);
    const group = groups.groupOf[i] ?? -1;
    if (group >= 0) openGroups.add(group);
  }
  const isSame = closedSpans.size === folds.closedSpans.size && openGroups.size === folds.openGroups.size;
  return isSame ? folds : { closedSpans, openGroups };
}

/** Returns the row that stands for a span: its own if it is visible, else that of the closed span or group around it. */
export function rowStandingFor(tree: Tree, groups: Groups, folds: Folds, span: number): number {
  let row = span;
  for (let i = span; i >= 0; i = tree.parent[i] ?? -1) {
    if (i !== span && folds.closedSpans.has(i)) row = i;
    const group = groups.groupOf[i] ?? -1;
    if (group >= 0 && !folds.openGroups.has(group)) row = rowOfGroup(group);
  }
  return row;
}

/** Returns the row of the parent: the group around a member, else the parent span; null at the top. */
export function parentRow(tree: Tree, groups: Groups, row: number): number | null {
  const first = isGroupRow(row) ? (groups.first[groupOfRow(row)] ?? 0) : row;
  const group = groups.groupOf[first] ?? -1;
  if (!isGroupRow(row) && group >= 0) return rowOfGroup(group);
  const up = tree.parent[first] ?? -1;
  return up < 0 ? null : up;
}
