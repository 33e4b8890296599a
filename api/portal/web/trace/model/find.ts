// Finds spans by their name, model, id or error, as it is typed. Names and models are compared once
// each, however many spans have them.
import type { Tree } from './tree.ts';

export interface Matches {
  /** Spans in the order of the tree. */
  spans: Int32Array;
  isMatch: Uint8Array;
}

interface Lowered {
  names: readonly string[];
  models: readonly string[];
  spanId: readonly string[];
}

/** Each key of a search compares the same texts, so they are made lower case once for each tree. */
const loweredOf = new WeakMap<Tree, Lowered>();

function lowered(tree: Tree): Lowered {
  const known = loweredOf.get(tree);
  if (known !== undefined) return known;
  const lower = (text: string): string => text.toLowerCase();
  const made = { names: tree.names.map(lower), models: tree.models.map(lower), spanId: tree.spanId.map(lower) };
  loweredOf.set(tree, made);
  return made;
}

/** Returns the spans that contain a text, whatever its case; none for a blank text. */
export function findSpans(tree: Tree, text: string): Matches {
  const wanted = text.trim().toLowerCase();
  const isMatch = new Uint8Array(tree.size);
  if (wanted === '') return { spans: new Int32Array(0), isMatch };
  const { names, models, spanId } = lowered(tree);
  const inNames = Uint8Array.from(names, (name) => Number(name.includes(wanted)));
  const inModels = Uint8Array.from(models, (model) => Number(model.includes(wanted)));
  const spans: number[] = [];
  for (let i = 0; i < tree.size; i += 1) {
    const isFound =
      inNames[tree.name[i] ?? -1] === 1 ||
      inModels[tree.model[i] ?? -1] === 1 ||
      (spanId[i] ?? '').includes(wanted) ||
      (tree.errors.get(i)?.toLowerCase().includes(wanted) ?? false);
    if (!isFound) continue;
    isMatch[i] = 1;
    spans.push(i);
  }
  return { spans: Int32Array.from(spans), isMatch };
}

/** Returns matches with further spans, such as those whose texts the server found. */
export function mergeMatches(tree: Tree, matches: Matches, more: Iterable<number>): Matches {
  const isMatch = Uint8Array.from(matches.isMatch);
  for (const i of more) if (i >= 0 && i < tree.size) isMatch[i] = 1;
  const spans: number[] = [];
  isMatch.forEach((is, i) => {
    if (is === 1) spans.push(i);
  });
  return { spans: Int32Array.from(spans), isMatch };
}

/**
 * Returns the member of an ascending list that follows a span (step 1) or precedes it (step -1),
 * going round at the ends; -1 for an empty list.
 */
export function stepThrough(list: Int32Array, from: number, step: 1 | -1): number {
  if (list.length === 0) return -1;
  if (step === 1) return list.find((i) => i > from) ?? list[0] ?? -1;
  return list.findLast((i) => i < from) ?? list.at(-1) ?? -1;
}
