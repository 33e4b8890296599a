// Searches the documents of an organization by the postings of words. It ranks documents with any of
// the words by BM25, whose scores are exact, and finds the traces of documents with all of the words.
//
// The work is bounded in documents and postings: where more would be needed, a ranking leaves out the
// oldest segments and says so. It runs on the event loop and pauses for other requests every few milliseconds.
import { inverseDocumentFrequency, termScoreMax } from '../../../../pipeline/domain/text/bm25.ts';
import type { ClickHouse } from '../../../../sql/client/client.ts';
import { OrgTurns } from '../../../http/org_turns.ts';
import { Pauses } from '../../../../sql/client/pauses.ts';
import { type CandidateFilters, readCandidates } from '../store.ts';
import type { KeySet } from './key_set.ts';
import { Best, documentFrequency, type Ranked, rankSegment, type WeightedWord, wordScore } from './ranking.ts';
import { type Loaded, newestSegments, type SearchBounds, SegmentLoader, type WordQuery } from './segment_loader.ts';
import { lengthsWithin } from './segments.ts';
import { TraceSearch } from './trace_search.ts';

/** Maximum documents that a search looks at: their lengths and starts need 6 to 16 bytes each. */
const DOCUMENTS_MAX = 16_000_000;
/** Maximum postings that a search holds, of 2 to 4 bytes each. */
const POSTINGS_MAX = 32_000_000;
const BOUNDS: SearchBounds = { documents: DOCUMENTS_MAX, postings: POSTINGS_MAX };
/** Searches of one process that hold documents and postings at a time; others wait. */
const SEARCHES_AT_ONCE = 4;
/** Bounds of the searches of one organization, so that others always get a place. */
export const SEARCHES_ORG_AT_ONCE = 3;
export const SEARCHES_ORG_MAX = 32;
export const SEARCH_WAIT_MS_MAX = 20_000;

/** A search for documents with any of the words. */
export interface DocumentQuery extends WordQuery {
  /** Words that every document must have. */
  required: ReadonlySet<string>;
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

export class DocumentSearch {
  readonly #clickhouse: ClickHouse;
  readonly #loader: SegmentLoader;
  readonly #traces: TraceSearch;
  readonly #turns = new OrgTurns('searches', {
    totalMax: SEARCHES_AT_ONCE,
    orgMax: SEARCHES_ORG_AT_ONCE,
    orgOpenMax: SEARCHES_ORG_MAX,
    waitMsMax: SEARCH_WAIT_MS_MAX,
  });

  constructor(clickhouse: ClickHouse) {
    this.#clickhouse = clickhouse;
    this.#loader = new SegmentLoader(clickhouse);
    this.#traces = new TraceSearch(this.#loader, SEARCHES_ORG_MAX);
  }

  /** @throws ApiError rate_limited when there is no place; the signal's reason when it aborts */
  rank(query: DocumentQuery, signal: AbortSignal, bounds: SearchBounds = BOUNDS): Promise<RankedDocuments> {
    return this.#turns.run(query.org_id, signal, () => this.#rank(query, signal, bounds));
  }

  /**
   * Returns the keys of the traces that have a document with all of the words; null if that takes
   * more than the bounds.
   * @throws ApiError as `rank` does
   */
  traces(query: WordQuery, signal: AbortSignal, bounds: SearchBounds = BOUNDS): Promise<KeySet | null> {
    return this.#turns.run(query.org_id, signal, () => this.#traces.find(query, signal, bounds));
  }

  async #rank(query: DocumentQuery, signal: AbortSignal, bounds: SearchBounds): Promise<RankedDocuments> {
    const { words, required, since, until } = query;
    const counted = { ...query, counted: true };
    const found = await this.#loader.segmentsAhead(counted, signal, bounds.postings);
    const all = found.filter(({ segment }) => segment > 0);
    const [segments, allowed] = await Promise.all([
      this.#loader.load(counted, newestSegments(all, bounds.documents), signal, bounds.postings),
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
