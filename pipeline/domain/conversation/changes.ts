// Compares the messages of a call with those of an earlier one, by their keys. In: two lists of
// keys. Out: which messages both have, and which were added, changed or dropped. Pure; bounded in
// time by CELLS_MAX.

/** Maximum cells of the table of a comparison; longer lists are compared by their multisets. */
const CELLS_MAX = 250_000;

/** The part of a message by which it is compared. */
export interface Compared {
  key: string;
  role: string;
}

/** Positions in the two lists. */
export interface Changes {
  /** Number of messages in both, in the same order. */
  kept: number;
  /** Positions in the later list. */
  added: number[];
  /** Positions in the earlier list. */
  dropped: number[];
  /** Messages of one role that stand in the same place. */
  changed: { before: number; after: number }[];
}

/** Returns the number of messages with which both lists begin. */
export function commonStart(before: readonly Compared[], after: readonly Compared[]): number {
  const most = Math.min(before.length, after.length);
  let count = 0;
  while (count < most && before[count]?.key === after[count]?.key) count++;
  return count;
}

/** Returns how `after` differs from `before`. */
export function changesBetween(before: readonly Compared[], after: readonly Compared[]): Changes {
  const start = commonStart(before, after);
  let end = 0;
  const most = Math.min(before.length, after.length) - start;
  while (end < most && before.at(-1 - end)?.key === after.at(-1 - end)?.key) end++;
  const pairs = pairsWithin(before.slice(start, before.length - end), after.slice(start, after.length - end));
  const changes: Changes = { kept: start + end + pairs.length, added: [], dropped: [], changed: [] };
  let [left, right] = [start, start];
  for (const [i, j] of [
    ...pairs.map(([i, j]) => [i + start, j + start] as const),
    [before.length - end, after.length - end] as const,
  ]) {
    addGap(changes, { before, after }, { from: left, to: i }, { from: right, to: j });
    [left, right] = [i + 1, j + 1];
  }
  return changes;
}

interface Stretch {
  from: number;
  to: number;
}

/** Adds the messages between two that both lists have; those of one role in the same place changed. */
function addGap(
  changes: Changes,
  { before, after }: { before: readonly Compared[]; after: readonly Compared[] },
  gone: Stretch,
  come: Stretch,
): void {
  let i = gone.from;
  let j = come.from;
  while (i < gone.to && j < come.to && before[i]?.role === after[j]?.role)
    changes.changed.push({ before: i++, after: j++ });
  while (i < gone.to) changes.dropped.push(i++);
  while (j < come.to) changes.added.push(j++);
}

/** Returns the positions of a longest common subsequence. */
function pairsWithin(before: readonly Compared[], after: readonly Compared[]): [number, number][] {
  if (before.length === 0 || after.length === 0) return [];
  if (before.length * after.length > CELLS_MAX) return pairsInOrder(before, after);
  const width = after.length + 1;
  const lengths = new Uint32Array((before.length + 1) * width);
  const at = (i: number, j: number): number => lengths[i * width + j] ?? 0;
  for (let i = before.length - 1; i >= 0; i--)
    for (let j = after.length - 1; j >= 0; j--)
      lengths[i * width + j] =
        before[i]?.key === after[j]?.key ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const pairs: [number, number][] = [];
  for (let i = 0, j = 0; i < before.length && j < after.length;) {
    if (before[i]?.key === after[j]?.key) pairs.push([i++, j++]);
    else if (at(i + 1, j) >= at(i, j + 1)) i++;
    else j++;
  }
  return pairs;
}

/** Returns equal messages in increasing positions, each earlier one with the next later one. */
function pairsInOrder(before: readonly Compared[], after: readonly Compared[]): [number, number][] {
  const places = new Map<string, { at: number; places: number[] }>();
  for (const [j, { key }] of after.entries()) {
    const known = places.get(key);
    if (known === undefined) places.set(key, { at: 0, places: [j] });
    else known.places.push(j);
  }
  const pairs: [number, number][] = [];
  let next = 0;
  for (const [i, { key }] of before.entries()) {
    const equal = places.get(key);
    if (equal === undefined) continue;
    while ((equal.places[equal.at] ?? Infinity) < next) equal.at++;
    const j = equal.places[equal.at];
    if (j === undefined) continue;
    pairs.push([i, j]);
    next = j + 1;
  }
  return pairs;
}
