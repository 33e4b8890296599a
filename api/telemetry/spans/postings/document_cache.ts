// Keeps the segments that searches have found, their documents, the traces of these and the postings of
// words, each of one organization, in memory up to a number of bytes. An entry is of a version of its segment, so an
// entry that misses a new document, or has a deleted one, is not used.
import { LRUCache } from 'lru-cache';
import type { Postings } from './ranking.ts';
import { isWithin, type Period, type Segment, type SegmentDocuments } from './segments.ts';

/** Four million documents need 24 MB. */
const DOCUMENT_BYTES_MAX = 96 * 1024 * 1024;
const POSTING_BYTES_MAX = 64 * 1024 * 1024;
/** Eight million documents. */
const TRACE_BYTES_MAX = 64 * 1024 * 1024;
/** Segments of all organizations together, of some 300 bytes each. */
const SEGMENTS_MAX = 50_000;
/** Bytes of an entry beside its lists, roughly. */
const ENTRY_BYTES = 200;

interface Versioned<Value> {
  version: string;
  value: Value;
  bytes: number;
}

/** Postings that may have been read without their counts. */
interface HeldPostings extends Versioned<Postings | null> {
  counted: boolean;
}

export class DocumentCache {
  readonly #documents = new LRUCache<string, Versioned<SegmentDocuments>>({
    maxSize: DOCUMENT_BYTES_MAX,
    sizeCalculation: ({ bytes }) => bytes + ENTRY_BYTES,
  });
  readonly #postings = new LRUCache<string, HeldPostings>({
    maxSize: POSTING_BYTES_MAX,
    sizeCalculation: ({ bytes }) => bytes + ENTRY_BYTES,
  });

  readonly #traces = new LRUCache<string, Versioned<Uint32Array>>({
    maxSize: TRACE_BYTES_MAX,
    sizeCalculation: ({ bytes }) => bytes + ENTRY_BYTES,
  });
  readonly #segments = new LRUCache<string, readonly Segment[]>({
    maxSize: SEGMENTS_MAX,
    sizeCalculation: (segments) => segments.length + 1,
  });

  /** Returns the segments that searches have found, as they were when they were last found. */
  segments(org_id: string): readonly Segment[] {
    return this.#segments.get(org_id) ?? [];
  }

  /** @param found all segments of a period */
  keepSegments(org_id: string, found: readonly Segment[], period: Period): void {
    const others = this.segments(org_id).filter((segment) => !isWithin(segment, period));
    const numbers = new Set(found.map(({ segment }) => segment));
    this.#segments.set(org_id, [...found, ...others.filter(({ segment }) => !numbers.has(segment))]);
  }

  documents(org_id: string, { segment, version }: Segment): SegmentDocuments | undefined {
    const held = this.#documents.get(`${org_id} ${segment}`);
    return held?.version === version ? held.value : undefined;
  }

  keepDocuments(org_id: string, { segment, version }: Segment, value: SegmentDocuments): void {
    this.#documents.set(`${org_id} ${segment}`, { version, value, bytes: value.bytes });
  }

  /** Returns the keys of traces by place, each as its lower and upper half. */
  traces(org_id: string, { segment, version }: Segment): Uint32Array | undefined {
    const held = this.#traces.get(`${org_id} ${segment}`);
    return held?.version === version ? held.value : undefined;
  }

  keepTraces(org_id: string, { segment, version }: Segment, value: Uint32Array): void {
    this.#traces.set(`${org_id} ${segment}`, { version, value, bytes: value.byteLength });
  }

  /**
   * Returns null for a word that no document of the segment has, undefined where that is not known.
   * @param counted true where postings without their counts do not do
   */
  postings(org_id: string, { segment, version }: Segment, word: string, counted: boolean): Postings | null | undefined {
    const held = this.#postings.get(`${org_id} ${segment} ${word}`);
    return held?.version === version && (held.counted || !counted) ? held.value : undefined;
  }

  keepPostings(
    org_id: string,
    { segment, version }: Segment,
    word: string,
    value: Postings | null,
    counted: boolean,
  ): void {
    const key = `${org_id} ${segment} ${word}`;
    const held = this.#postings.peek(key);
    if (!counted && held?.counted === true && held.version === version) return;
    const bytes = value === null ? 0 : value.places.byteLength + (value.counts?.byteLength ?? 0);
    this.#postings.set(key, { version, value, bytes, counted });
  }
}
