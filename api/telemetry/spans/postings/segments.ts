// Documents of an organization by segment: how long each is and when it started. A segment has up to
// 65,536 documents of all organizations; lists here are indexed by the place in it.

/** The documents of an organization in a segment, counted. */
export interface Segment {
  segment: number;
  /** Documents with words, and their words in all. */
  documents: number;
  words: number;
  /** Changes whenever a document comes or goes. */
  version: string;
  /** First and last place. */
  first: number;
  last: number;
  /** Start of the first and of the last document, milliseconds. */
  from_ms: number;
  to_ms: number;
}

export interface SegmentDocuments {
  /** Place of the first element of the lists. */
  first: number;
  /** Number of words by place; 0 where the organization has no document. */
  lengths: Uint16Array | Uint32Array;
  /** Start of each document in milliseconds after `from_ms`. */
  starts: Uint32Array | Float64Array;
  from_ms: number;
  bytes: number;
}

const UINT16_MAX = 0xffff;
const UINT32_MAX = 0xffff_ffff;

/**
 * Returns the documents of a segment from lists of the same order, in the smallest numbers that hold
 * them.
 * @param times start of each document, milliseconds
 */
export function documentsOf(
  { first, last, from_ms, to_ms }: Segment,
  places: Uint16Array,
  lengths: Uint32Array,
  times: Float64Array,
): SegmentDocuments {
  const size = last - first + 1;
  const longest = lengths.reduce((most, length) => Math.max(most, length), 0);
  const byPlace = longest > UINT16_MAX ? new Uint32Array(size) : new Uint16Array(size);
  const starts = to_ms - from_ms > UINT32_MAX ? new Float64Array(size) : new Uint32Array(size);
  for (let index = 0; index < places.length; index++) {
    const at = (places[index] ?? 0) - first;
    byPlace[at] = lengths[index] ?? 0;
    starts[at] = (times[index] ?? 0) - from_ms;
  }
  return { first, lengths: byPlace, starts, from_ms, bytes: byPlace.byteLength + starts.byteLength };
}

/** A period; milliseconds, both inclusive. */
export interface Period {
  since?: number | undefined;
  until?: number | undefined;
}

/** Returns true if documents of the segment may have started in the period. */
export const isWithin = ({ from_ms, to_ms }: Segment, { since = -Infinity, until = Infinity }: Period): boolean =>
  to_ms >= since && from_ms <= until;

/**
 * Returns the lengths of the documents that started in a period, 0 for the others; the lists of the
 * segment itself where all did.
 */
export function lengthsWithin(
  { from_ms, to_ms }: Segment,
  documents: SegmentDocuments,
  { since = -Infinity, until = Infinity }: Period,
): Uint16Array | Uint32Array {
  if (from_ms >= since && to_ms <= until) return documents.lengths;
  const lengths = documents.lengths.slice();
  for (let at = 0; at < lengths.length; at++) {
    const time = documents.from_ms + (documents.starts[at] ?? 0);
    if (time < since || time > until) lengths[at] = 0;
  }
  return lengths;
}
