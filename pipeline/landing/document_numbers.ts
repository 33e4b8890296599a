// Numbers documents of the search, part after part. A number is 65536 times the segment plus the place in it, and a segment
// belongs to one epoch of the text mover: what a failed move or a former leader has numbered is never numbered again. Moved
// and older texts have segments of their own, so that the places which a failed move may leave are in its epoch's last ones. Pure.

/** Documents of a segment: places are 16 bits in postings. */
export const SEGMENT_DOCS = 65_536;
/** Segments of an epoch: the first half is for moved texts, the second half for older ones. */
const EPOCH_SEGMENTS = 2n ** 20n;

export class DocumentNumbers {
  #segment: bigint;
  #filled = 0;

  /** @param epoch of the text mover, at least 1 and less than 2^28 */
  constructor(epoch: number, texts: 'moved' | 'older' = 'moved') {
    this.#segment = firstSegmentOf(epoch) + (texts === 'moved' ? 0n : EPOCH_SEGMENTS / 2n);
  }

  /**
   * Returns the first of as many consecutive numbers. They are of one segment, if one segment can hold
   * them.
   */
  take(documents: number): bigint {
    if (this.#filled + documents > SEGMENT_DOCS && this.#filled > 0) {
      this.#segment += 1n;
      this.#filled = 0;
    }
    const first = this.#segment * BigInt(SEGMENT_DOCS) + BigInt(this.#filled);
    const end = this.#filled + documents;
    this.#segment += BigInt(Math.floor(end / SEGMENT_DOCS));
    this.#filled = end % SEGMENT_DOCS;
    return first;
  }
}

/** Returns the first segment of an epoch. */
export function firstSegmentOf(epoch: number): bigint {
  return BigInt(epoch) * EPOCH_SEGMENTS;
}

/** Returns the segments of as many documents from a number on, in order. */
export function segmentsOf(first: bigint, documents: number): bigint[] {
  if (documents === 0) return [];
  const size = BigInt(SEGMENT_DOCS);
  const from = first / size;
  const to = (first + BigInt(documents) - 1n) / size;
  return Array.from({ length: Number(to - from) + 1 }, (_, index) => from + BigInt(index));
}
