// The state of the comparison in the address: the pair that is open, and whether unchanged spans are
// shown.
import { choice, codec, text } from '../../url/search_params.ts';
import type { Alignment } from '../../trace/compare/align.ts';
import type { Tree } from '../../trace/model/tree.ts';

export const compareUrl = codec({
  /** Id of the left span; of a span that only the right trace has, its id after a colon. */
  pair: text(),
  only: choice(['changed', 'all'], 'changed'),
});

/** Returns the name of a row in the address. */
export function pairName({ left, right }: Alignment, row: number, trees: { left: Tree; right: Tree }): string {
  const a = left[row] ?? -1;
  return a >= 0 ? (trees.left.spanId[a] ?? '') : `:${trees.right.spanId[right[row] ?? -1] ?? ''}`;
}

/** Returns the row that the address names; -1 for none. */
export function rowOfPair({ left, right }: Alignment, name: string, trees: { left: Tree; right: Tree }): number {
  if (name === '') return -1;
  const a = trees.left.indexOf.get(name);
  if (a !== undefined) return left.indexOf(a);
  const b = name.startsWith(':') ? trees.right.indexOf.get(name.slice(1)) : undefined;
  return b === undefined ? -1 : right.indexOf(b);
}
