// Scores the documents of segments by BM25 and keeps the best. Pure; the formula is that of
// pipeline/domain/text/bm25.ts, with what does not depend on the document taken out of the loops.
import { BM25_B, BM25_K1 } from '../../../../pipeline/domain/text/bm25.ts';

/** Documents of an organization that have a word, in one segment. */
export interface Postings {
  /** Places, each once, in no particular order. */
  places: Uint16Array;
  /** How often each has the word; null where each has it once. */
  counts: Uint8Array | Uint16Array | null;
}

/** A word with its weight: the inverse document frequency times (k1 + 1). */
export interface WeightedWord {
  weight: number;
  /** A document without a required word is left out. */
  required: boolean;
}

/** A scored document. */
export interface Ranked {
  score: number;
  /** Start, milliseconds. */
  time: number;
  segment: number;
  place: number;
}

/** Lists of one segment; those by place begin at `first`. */
export interface ScoredSegment {
  segment: number;
  first: number;
  /** 0 for documents that are not scored. */
  lengths: Uint16Array | Uint32Array;
  starts: Uint32Array | Float64Array;
  from_ms: number;
  /** 1 for documents within the filters; null where there is no filter. */
  allowed: Uint8Array | null;
  /** By word; null where no document of the segment has it. */
  postings: readonly (Postings | null)[];
}

/** True if `a` ranks before `b`: by score, then the newest first, then by number. */
export function isBefore(a: Ranked, b: Ranked): boolean {
  if (a.score !== b.score) return a.score > b.score;
  if (a.time !== b.time) return a.time > b.time;
  return a.segment === b.segment ? a.place < b.place : a.segment < b.segment;
}

/** The best documents up to a number: a heap whose first element ranks last. */
export class Best {
  readonly #heap: Ranked[] = [];
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  /** Score below which a document cannot be among the best. */
  get threshold(): number {
    return this.#heap.length < this.#max ? -Infinity : (this.#heap[0]?.score ?? -Infinity);
  }

  add(ranked: Ranked): void {
    const heap = this.#heap;
    if (heap.length < this.#max) {
      heap.push(ranked);
      this.#rise(heap.length - 1);
      return;
    }
    const last = heap[0];
    if (last === undefined || !isBefore(ranked, last)) return;
    heap[0] = ranked;
    this.#sink();
  }

  /** Returns the documents, the best first. */
  sorted(): Ranked[] {
    return this.#heap.toSorted((a, b) => (isBefore(a, b) ? -1 : 1));
  }

  #rise(from: number): void {
    const heap = this.#heap;
    for (let at = from; at > 0;) {
      const above = (at - 1) >> 1;
      const [here, parent] = [heap[at], heap[above]];
      if (here === undefined || parent === undefined || !isBefore(parent, here)) return;
      heap[at] = parent;
      heap[above] = here;
      at = above;
    }
  }

  #sink(): void {
    const heap = this.#heap;
    for (let at = 0; ;) {
      let last = at;
      for (const below of [2 * at + 1, 2 * at + 2]) {
        const [child, worst] = [heap[below], heap[last]];
        if (child !== undefined && worst !== undefined && isBefore(worst, child)) last = below;
      }
      const [here, child] = [heap[at], heap[last]];
      if (last === at || here === undefined || child === undefined) return;
      heap[at] = child;
      heap[last] = here;
      at = last;
    }
  }
}

/** Returns what a word adds to the score of a document of `dl` words that has it `tf` times. */
export function wordScore(weight: number, tf: number, dl: number, avgdl: number): number {
  return (weight * tf) / (tf + BM25_K1 * (1 - BM25_B) + ((BM25_K1 * BM25_B) / avgdl) * dl);
}

/** Returns the number of documents with a word, in a period. */
export function documentFrequency({ places }: Postings, first: number, lengths: Uint16Array | Uint32Array): number {
  let df = 0;
  for (const place of places) if ((lengths[place - first] ?? 0) > 0) df += 1;
  return df;
}

/** Scores of a segment, by place, and how many of the required words a document has; reused. */
const SEGMENT_PLACES = 65_536;
const scores = new Float64Array(SEGMENT_PLACES);
const has = new Uint8Array(SEGMENT_PLACES);

/**
 * Adds the documents of a segment to the best.
 * @param avgdl mean number of words of a document
 * @returns number of scored documents
 */
export function rankSegment(segment: ScoredSegment, words: readonly WeightedWord[], avgdl: number, best: Best): number {
  const { first, lengths, postings, allowed, starts, from_ms } = segment;
  const required = words.filter((word) => word.required).length;
  if (words.some((word, index) => word.required && postings[index] == null)) return 0;
  const base = BM25_K1 * (1 - BM25_B);
  const perWord = (BM25_K1 * BM25_B) / avgdl;
  const size = lengths.length;
  scores.fill(0, 0, size);
  if (required > 0) has.fill(0, 0, size);
  for (const [index, { weight, required: needed }] of words.entries()) {
    const list = postings[index];
    if (list == null) continue;
    const { places, counts } = list;
    for (let i = 0; i < places.length; i++) {
      const at = (places[i] ?? 0) - first;
      const dl = lengths[at] ?? 0;
      if (dl === 0) continue;
      const tf = counts === null ? 1 : (counts[i] ?? 1);
      scores[at] = (scores[at] ?? 0) + (weight * tf) / (tf + base + perWord * dl);
      if (needed) has[at] = (has[at] ?? 0) + 1;
    }
  }
  let scored = 0;
  let { threshold } = best;
  for (let at = 0; at < size; at++) {
    const score = scores[at] ?? 0;
    if (score === 0 || (allowed !== null && allowed[at] !== 1) || (required > 0 && (has[at] ?? 0) < required)) continue;
    scored += 1;
    if (score < threshold) continue;
    best.add({ score, time: from_ms + (starts[at] ?? 0), segment: segment.segment, place: at + first });
    threshold = best.threshold;
  }
  return scored;
}
