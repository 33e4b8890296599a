// Ranks the documents of an organization by BM25 over the postings of words. It reads which segments
// have documents in the searched time, their documents and the postings of the words (from memory
// where they are known), counts, and scores every document with any of the words. Scores are exact.
//
// The work is bounded in documents and postings: where more would be needed, the oldest segments are
// left out, and the answer says so. It runs on the event loop and pauses for other requests every few milliseconds.
import { inverseDocumentFrequency, termScoreMax } from '../../../../pipeline/domain/text/bm25.ts';
import type { ClickHouse } from '../../../../sql/client/client.ts';
import { Pauses } from '../../../http/pauses.ts';
import { type CandidateFilters, readCandidates, readDocuments, readPostings, readSegments } from '../store.ts';
import { DocumentCache } from './document_cache.ts';
import { PostingList } from './posting_lists.ts';
import {
  Best,
  documentFrequency,
  type Postings,
  type Ranked,
  rankSegment,
  type WeightedWord,
  wordScore,
} from './ranking.ts';
import { documentsOf, lengthsWithin, type Segment, type SegmentDocuments } from './segments.ts';

/** Maximum documents that a search looks at: their lengths and starts need 6 to 16 bytes each. */
const DOCUMENTS_MAX = 16_000_000;
/** Maximum postings that a search holds, of 2 to 4 bytes each. */
const POSTINGS_MAX = 32_000_000;
/** Segments whose documents one statement reads: up to 2 million documents of 14 bytes. */
const SEGMENTS_AT_ONCE = 32;
/** Searches of one process that hold documents and postings at a time; others wait. */
const SEARCHES_AT_ONCE = 4;
const SEGMENT_DOCS = 65_536n;

export interface SearchBounds {
  documents: number;
  postings: number;
}

/** A search for documents with any of the words. */
export interface DocumentQuery {
  org_id: string;
  words: readonly string[];
  /** Words that every document must have. */
  required: ReadonlySet<string>;
  /** Milliseconds; both inclusive. */
  since: number | undefined;
  until: number | undefined;
  /** Null where every document of the time may be found. */
  filters: CandidateFilters | null;
  /** Number of documents to return. */
  limit: number;
}

/** A word that occurs, with the number of documents that have it and its weight. */
export interface Term {
  word: string;
  df: number;
  idf: number;
}

export interface RankedDocuments {
  /** The best first. */
  best: Ranked[];
  /** The rarest word first; words that occur nowhere are left out. */
  terms: Term[];
  /** Number of scored documents. */
  candidates: number;
  /** True if the oldest documents were left out. */
  truncated: boolean;
  /** True if texts of the time have no document number yet. */
  unnumbered: boolean;
  /** Returns what each of the terms adds to the scores of documents among the best, in their order. */
  partsOf(documents: readonly Ranked[]): number[][];
}

/** A segment with what the search needs of it. */
interface Loaded extends Segment {
  held: SegmentDocuments;
  /** Lengths of the documents in the searched time. */
  lengths: Uint16Array | Uint32Array;
  /** By word of the query. */
  postings: (Postings | null)[];
}

/** Returns the number of a document. */
export const docOf = ({ segment, place }: Ranked): bigint => BigInt(segment) * SEGMENT_DOCS + BigInt(place);

export class DocumentSearch {
  readonly #clickhouse: ClickHouse;
  readonly #cache = new DocumentCache();
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(clickhouse: ClickHouse) {
    this.#clickhouse = clickhouse;
  }

  async rank(
    query: DocumentQuery,
    signal: AbortSignal,
    bounds: SearchBounds = { documents: DOCUMENTS_MAX, postings: POSTINGS_MAX },
  ): Promise<RankedDocuments> {
    await this.#enter();
    try {
      signal.throwIfAborted();
      return await this.#rank(query, signal, bounds);
    } finally {
      this.#leave();
    }
  }

  async #enter(): Promise<void> {
    if (this.#running < SEARCHES_AT_ONCE) this.#running += 1;
    else
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
  }

  /** A search that waits takes the place of the one that ends. */
  #leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#running -= 1;
    else next();
  }

  async #rank(query: DocumentQuery, signal: AbortSignal, bounds: SearchBounds): Promise<RankedDocuments> {
    const { words, required, since, until } = query;
    const found = await this.#segments(query, signal);
    const all = found.filter(({ segment }) => segment > 0);
    const [segments, allowed] = await Promise.all([
      this.#load(query, newestSegments(all, bounds.documents), signal, bounds.postings),
      query.filters === null ? null : this.#allowed(query.filters, signal),
    ]);
    const pauses = new Pauses(signal);
    let documents = 0;
    let wordsInAll = 0;
    const df = words.map(() => 0);
    for (const segment of segments) {
      const within = { since, until };
      segment.lengths = lengthsWithin(segment, segment.held, within);
      const isWhole = segment.lengths === segment.held.lengths;
      documents += isWhole ? segment.documents : countLengths(segment.lengths);
      wordsInAll += isWhole ? segment.words : sumLengths(segment.lengths);
      for (const [index, list] of segment.postings.entries()) {
        if (list === null) continue;
        // A list has the documents of the organization alone.
        df[index] =
          (df[index] ?? 0) + (isWhole ? list.places.length : documentFrequency(list, segment.first, segment.lengths));
      }
      await pauses.give();
    }
    const avgdl = documents === 0 ? 1 : wordsInAll / documents;
    const weighted = words.map((word, index): WeightedWord & Term => {
      const found = df[index] ?? 0;
      // A document that lands between the reads may make df exceed the number of documents.
      const idf = found === 0 ? 0 : inverseDocumentFrequency(Math.max(documents, found), found);
      return { word, df: found, idf, weight: termScoreMax(idf), required: required.has(word) };
    });
    const best = new Best(query.limit);
    let candidates = 0;
    for (const { segment, first, lengths, held, postings } of segments) {
      if (allowed !== null && !allowed.has(segment)) continue;
      const mask = allowed === null ? null : maskOf(allowed.get(segment) ?? [], first, lengths.length);
      const scored = { segment, first, lengths, starts: held.starts, from_ms: held.from_ms, allowed: mask, postings };
      candidates += rankSegment(scored, weighted, avgdl, best);
      await pauses.give();
    }
    const order = [...words.keys()].filter((index) => (df[index] ?? 0) > 0).sort((a, b) => (df[a] ?? 0) - (df[b] ?? 0));
    return {
      best: best.sorted(),
      terms: order.flatMap((index) => {
        const term = weighted[index];
        return term === undefined ? [] : [{ word: term.word, df: term.df, idf: term.idf }];
      }),
      candidates,
      truncated: segments.length < all.length,
      unnumbered: all.length < found.length,
      partsOf: (documents) => partsOf(documents, segments, order, weighted, avgdl),
    };
  }

  /**
   * Returns the segments with documents in the searched time, the newest first. Segment 0 is of texts
   * without a number.
   */
  async #segments({ org_id, since, until }: DocumentQuery, signal: AbortSignal): Promise<Segment[]> {
    const rows = await readSegments(this.#clickhouse, { org_id, since_ms: since, until_ms: until }, { signal });
    return rows
      .map(({ numbers, first, last, ...row }) => ({
        ...row,
        first: Number(first % SEGMENT_DOCS),
        last: Number(last % SEGMENT_DOCS),
        version: `${row.documents}:${row.words}:${numbers}`,
      }))
      .sort((a, b) => b.to_ms - a.to_ms || b.segment - a.segment);
  }

  /** Returns the places within the filters, by segment. */
  async #allowed(filters: CandidateFilters, signal: AbortSignal): Promise<Map<number, Uint16Array[]>> {
    const allowed = new Map<number, Uint16Array[]>();
    for await (const { segment, places } of readCandidates(this.#clickhouse, filters, { signal })) {
      const lists = allowed.get(segment);
      if (lists === undefined) allowed.set(segment, [places]);
      else lists.push(places);
    }
    return allowed;
  }

  /**
   * Loads segments with their documents and postings; without the oldest ones if the words have too
   * many postings.
   */
  async #load(
    query: DocumentQuery,
    segments: readonly Segment[],
    signal: AbortSignal,
    postingsMax: number,
  ): Promise<Loaded[]> {
    const held = await this.#documents(query.org_id, segments, signal);
    const loaded = segments.flatMap((segment): Loaded[] => {
      const documents = held.get(segment.segment);
      if (documents === undefined) return [];
      return [{ ...segment, held: documents, lengths: documents.lengths, postings: query.words.map(() => null) }];
    });
    for (let count = loaded.length; ; count = Math.floor(count / 2)) {
      const newest = loaded.slice(0, count);
      if ((await this.#postings(query, newest, signal, postingsMax)) || count <= 1) return newest;
    }
  }

  async #documents(
    org_id: string,
    segments: readonly Segment[],
    signal: AbortSignal,
  ): Promise<Map<number, SegmentDocuments>> {
    const held = new Map<number, SegmentDocuments>();
    const missing: Segment[] = [];
    for (const segment of segments) {
      const documents = this.#cache.documents(org_id, segment);
      if (documents === undefined) missing.push(segment);
      else held.set(segment.segment, documents);
    }
    missing.sort((a, b) => a.segment - b.segment);
    for (let at = 0; at < missing.length; at += SEGMENTS_AT_ONCE) {
      const group = new Map(missing.slice(at, at + SEGMENTS_AT_ONCE).map((segment) => [segment.segment, segment]));
      const numbers = [...group.keys()];
      const range = {
        org_id,
        segments: numbers,
        first: BigInt(numbers[0] ?? 0) * SEGMENT_DOCS,
        last: BigInt((numbers.at(-1) ?? 0) + 1) * SEGMENT_DOCS - 1n,
      };
      for await (const { segment: number, places, lengths, times } of readDocuments(this.#clickhouse, range, {
        signal,
      })) {
        const segment = group.get(number);
        if (segment === undefined) continue;
        const documents = documentsOf(segment, places, lengths, times);
        this.#cache.keepDocuments(org_id, segment, documents);
        held.set(number, documents);
      }
    }
    return held;
  }

  /**
   * Fills in the postings of the segments.
   * @returns false if the words have more postings than the search may hold
   */
  async #postings(
    { org_id, words }: DocumentQuery,
    segments: readonly Loaded[],
    signal: AbortSignal,
    postingsMax: number,
  ): Promise<boolean> {
    let count = 0;
    const missing = new Map<number, { segment: Loaded; lists: (PostingList | null)[] }>();
    const missingWords = new Set<number>();
    for (const segment of segments) {
      for (const [index, word] of words.entries()) {
        const known = this.#cache.postings(org_id, segment, word);
        if (known !== undefined) {
          segment.postings[index] = known;
          count += known?.places.length ?? 0;
          continue;
        }
        const { lists } = missing.get(segment.segment) ?? { lists: words.map((): PostingList | null => null) };
        lists[index] = new PostingList(segment.held);
        missing.set(segment.segment, { segment, lists });
        missingWords.add(index);
      }
    }
    if (count > postingsMax) return false;
    if (missing.size === 0) return true;
    const asked = [...missingWords];
    const numbers = [...missing.keys()].sort((a, b) => a - b);
    const pauses = new Pauses(signal);
    const rows = readPostings(
      this.#clickhouse,
      {
        words: asked.map((index) => words[index] ?? ''),
        segments: numbers,
        first: BigInt(numbers[0] ?? 0),
        last: BigInt(numbers.at(-1) ?? 0),
      },
      { signal },
    );
    for await (const { word, segment, places, counts } of rows) {
      const index = asked[word];
      if (index === undefined) throw new Error('the store returned postings of a word that was not asked');
      count += missing.get(segment)?.lists[index]?.add(places, counts) ?? 0;
      if (count > postingsMax) return false;
      await pauses.give();
    }
    for (const { segment, lists } of missing.values())
      for (const [index, list] of lists.entries()) {
        if (list === null) continue;
        const postings = list.postings();
        segment.postings[index] = postings;
        this.#cache.keepPostings(org_id, segment, words[index] ?? '', postings);
      }
    return true;
  }
}

/** Returns the newest segments up to a number of documents; at least one. */
export function newestSegments(segments: readonly Segment[], documentsMax: number): Segment[] {
  let sum = 0;
  const end = segments.findIndex(({ documents }, index) => (sum += documents) > documentsMax && index > 0);
  return end === -1 ? [...segments] : segments.slice(0, end);
}

function countLengths(lengths: Uint16Array | Uint32Array): number {
  let count = 0;
  for (const length of lengths) if (length > 0) count += 1;
  return count;
}

function sumLengths(lengths: Uint16Array | Uint32Array): number {
  let sum = 0;
  for (const length of lengths) sum += length;
  return sum;
}

function maskOf(lists: readonly Uint16Array[], first: number, size: number): Uint8Array {
  const mask = new Uint8Array(size);
  for (const places of lists) for (const place of places) if (place >= first) mask[place - first] = 1;
  return mask;
}

function partsOf(
  ranked: readonly Ranked[],
  segments: readonly Loaded[],
  order: readonly number[],
  words: readonly WeightedWord[],
  avgdl: number,
): number[][] {
  const bySegment = new Map(segments.map((segment) => [segment.segment, segment]));
  return ranked.map(({ segment: number, place }) => {
    const segment = bySegment.get(number);
    return order.map((index) => {
      const list = segment?.postings[index];
      const at = list?.places.indexOf(place) ?? -1;
      if (segment === undefined || list == null || at === -1) return 0;
      const dl = segment.lengths[place - segment.first] ?? 0;
      return wordScore(words[index]?.weight ?? 0, list.counts?.[at] ?? 1, dl, avgdl);
    });
  });
}
