// Collects the rows of postings of one word and segment, which are of all organizations and may be
// several, into the list of one organization.
import type { Postings } from './ranking.ts';
import type { SegmentDocuments } from './segments.ts';

export class PostingList {
  readonly #documents: SegmentDocuments;
  readonly #places: Uint16Array[] = [];
  readonly #counts: (Uint16Array | null)[] = [];

  constructor(documents: SegmentDocuments) {
    this.#documents = documents;
  }

  /**
   * Adds the places that are documents of the organization.
   * @param counts empty where each has the word once
   * @returns number of places added
   */
  add(places: Uint16Array, counts: Uint16Array): number {
    const { first, lengths } = this.#documents;
    const size = lengths.length;
    const kept = new Uint16Array(places.length);
    const keptCounts = counts.length === 0 ? null : new Uint16Array(places.length);
    let length = 0;
    for (let index = 0; index < places.length; index++) {
      const place = places[index] ?? 0;
      const at = place - first;
      if (at < 0 || at >= size || lengths[at] === 0) continue;
      kept[length] = place;
      if (keptCounts !== null) keptCounts[length] = counts[index] ?? 1;
      length += 1;
    }
    if (length === 0) return 0;
    this.#places.push(kept.slice(0, length));
    this.#counts.push(
      keptCounts === null || keptCounts.subarray(0, length).every((n) => n === 1) ? null : keptCounts.slice(0, length),
    );
    return length;
  }

  /** Returns null if no document has the word. */
  postings(): Postings | null {
    const [places] = this.#places;
    if (places === undefined) return null;
    if (this.#places.length === 1) return { places, counts: narrowed(this.#counts[0] ?? null) };
    const length = this.#places.reduce((sum, list) => sum + list.length, 0);
    const all = new Uint16Array(length);
    const counts = this.#counts.some((list) => list !== null) ? new Uint16Array(length).fill(1) : null;
    let at = 0;
    for (const [index, list] of this.#places.entries()) {
      all.set(list, at);
      const own = this.#counts[index];
      if (counts !== null && own != null) counts.set(own, at);
      at += list.length;
    }
    return { places: all, counts: narrowed(counts) };
  }
}

const UINT8_MAX = 0xff;

/** Returns the numbers in half the bytes where they fit, as nearly all do. */
const narrowed = (counts: Uint16Array | null): Uint8Array | Uint16Array | null =>
  counts?.every((count) => count <= UINT8_MAX) === true ? Uint8Array.from(counts) : counts;
