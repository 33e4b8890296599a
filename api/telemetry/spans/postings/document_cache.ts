// Keeps the documents of segments and the postings of words that searches have read, each of one
// organization, in memory up to a number of bytes. An entry is of a version of its segment, so an
// entry that misses a new document, or has a deleted one, is not used.
import { LRUCache } from 'lru-cache';
import type { Postings } from './ranking.ts';
import type { Segment, SegmentDocuments } from './segments.ts';

/** Four million documents need 24 MB. */
const DOCUMENT_BYTES_MAX = 96 * 1024 * 1024;
const POSTING_BYTES_MAX = 64 * 1024 * 1024;
/** Bytes of an entry beside its lists, roughly. */
const ENTRY_BYTES = 200;

interface Versioned<Value> {
  version: string;
  value: Value;
  bytes: number;
}

export class DocumentCache {
  readonly #documents = new LRUCache<string, Versioned<SegmentDocuments>>({
    maxSize: DOCUMENT_BYTES_MAX,
    sizeCalculation: ({ bytes }) => bytes + ENTRY_BYTES,
  });
  readonly #postings = new LRUCache<string, Versioned<Postings | null>>({
    maxSize: POSTING_BYTES_MAX,
    sizeCalculation: ({ bytes }) => bytes + ENTRY_BYTES,
  });

  documents(org_id: string, { segment, version }: Segment): SegmentDocuments | undefined {
    const held = this.#documents.get(`${org_id} ${segment}`);
    return held?.version === version ? held.value : undefined;
  }

  keepDocuments(org_id: string, { segment, version }: Segment, value: SegmentDocuments): void {
    this.#documents.set(`${org_id} ${segment}`, { version, value, bytes: value.bytes });
  }

  /** Returns null for a word that no document of the segment has, undefined where that is not known. */
  postings(org_id: string, { segment, version }: Segment, word: string): Postings | null | undefined {
    const held = this.#postings.get(`${org_id} ${segment} ${word}`);
    return held?.version === version ? held.value : undefined;
  }

  keepPostings(org_id: string, { segment, version }: Segment, word: string, value: Postings | null): void {
    const bytes = value === null ? 0 : value.places.byteLength + (value.counts?.byteLength ?? 0);
    this.#postings.set(`${org_id} ${segment} ${word}`, { version, value, bytes });
  }
}
