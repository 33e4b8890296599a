// Decides which removed line stands beside which added line in a stretch of changed lines. Lines that
// resemble each other become pairs, in order; what is left between two pairs stands side by side. Pure.

type Pair = readonly [left: number | null, right: number | null];

/** Larger stretches are paired from the top: a table of all pairs would cost too much. */
const CELLS_MAX = 10_000;
/** Lines that share less than this of the longer one are no pair. */
const ALIKE_MIN = 0.4;

/** Returns all lines of both sides in order, each once. */
export function pairLines(left: readonly string[], right: readonly string[]): Pair[] {
  const pairs: Pair[] = [];
  let [a, b] = [0, 0];
  const between = (to_a: number, to_b: number): void => {
    for (; a < to_a && b < to_b; a += 1, b += 1) pairs.push([a, b]);
    for (; a < to_a; a += 1) pairs.push([a, null]);
    for (; b < to_b; b += 1) pairs.push([null, b]);
  };
  for (const [left_at, right_at] of alikeLines(left, right)) {
    between(left_at, right_at);
    pairs.push([left_at, right_at]);
    [a, b] = [left_at + 1, right_at + 1];
  }
  between(left.length, right.length);
  return pairs;
}

/** Returns the pairs of lines that resemble each other most in sum, in order. */
function alikeLines(left: readonly string[], right: readonly string[]): [number, number][] {
  if (left.length === 0 || right.length === 0 || left.length * right.length > CELLS_MAX) return [];
  const width = right.length + 1;
  const best = new Float64Array((left.length + 1) * width);
  const at = (i: number, j: number): number => best[i * width + j] ?? 0;
  for (let i = left.length - 1; i >= 0; i -= 1)
    for (let j = right.length - 1; j >= 0; j -= 1)
      best[i * width + j] = Math.max(
        at(i + 1, j),
        at(i, j + 1),
        at(i + 1, j + 1) + likeness(left[i] ?? '', right[j] ?? ''),
      );
  const pairs: [number, number][] = [];
  for (let [i, j] = [0, 0]; i < left.length && j < right.length;) {
    const alike = likeness(left[i] ?? '', right[j] ?? '');
    if (alike > 0 && at(i, j) === at(i + 1, j + 1) + alike) {
      pairs.push([i, j]);
      i += 1;
      j += 1;
    } else if (at(i, j) === at(i + 1, j)) i += 1;
    else j += 1;
  }
  return pairs;
}

/** Returns the share of the longer line that both have at their beginning and end; 0 below the least. */
function likeness(a: string, b: string): number {
  const least = Math.min(a.length, b.length, 2000);
  let head = 0;
  while (head < least && a.charCodeAt(head) === b.charCodeAt(head)) head += 1;
  let tail = 0;
  while (tail < least - head && a.charCodeAt(a.length - 1 - tail) === b.charCodeAt(b.length - 1 - tail)) tail += 1;
  const share = (head + tail) / Math.max(1, a.length, b.length);
  return share < ALIKE_MIN ? 0 : share;
}
