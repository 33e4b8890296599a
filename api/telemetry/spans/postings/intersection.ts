// Finds the documents of a segment that have all of some words.
import type { Loaded } from './segment_loader.ts';

const NONE = new Uint16Array(0);

/**
 * Returns the places of documents that have every word.
 * @param lengths by place from the first on; 0 for documents that are not asked
 */
export function placesWithAll(
  { first, postings }: Pick<Loaded, 'first' | 'postings'>,
  lengths: Uint16Array | Uint32Array,
): Uint16Array {
  const lists = postings.flatMap((list) => (list === null ? [] : [list.places]));
  if (lists.length < postings.length) return NONE;
  // The shortest list leaves the fewest candidates to the others.
  lists.sort((a, b) => a.length - b.length);
  /** Number of the words so far that each document has. */
  const had = new Uint8Array(lengths.length);
  let candidates = lists[0] ?? NONE;
  for (const [words, places] of lists.entries()) {
    const kept = new Uint16Array(candidates.length);
    let length = 0;
    for (const place of places) {
      const at = place - first;
      if (had[at] !== words) continue;
      had[at] = words + 1;
      if (words > 0 || (lengths[at] ?? 0) > 0) kept[length++] = place;
      else had[at] = 0;
    }
    candidates = kept.subarray(0, length);
    if (length === 0) break;
  }
  return candidates;
}
