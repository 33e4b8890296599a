// Reads what searches need of segments: which hold documents of an organization in a period, their
// documents, the postings of words and the traces of documents. What is known of a version of a
// segment is taken from memory.
import type { ClickHouse } from '../../../../sql/client/client.ts';
import { Pauses } from '../../../../sql/client/pauses.ts';
import { readDocuments, readPostings, readSegments, readTraceKeys, readTracesOfDocuments } from '../store.ts';
import { DocumentCache } from './document_cache.ts';
import { KeySet } from './key_set.ts';
import { PostingList } from './posting_lists.ts';
import type { Postings } from './ranking.ts';
import { documentsOf, isWithin, type Segment, type SegmentDocuments } from './segments.ts';

/** Segments whose documents one statement reads: up to 2 million documents of 14 bytes. */
const SEGMENTS_AT_ONCE = 32;
/** Documents up to which a statement asks for their traces by number, and not by segment. */
const FEW_DOCUMENTS = 4000;
const SEGMENT_DOCS = 65_536n;

/** Documents with any of the words in a period, whose bounds are milliseconds, both inclusive. */
export interface WordQuery {
  org_id: string;
  words: readonly string[];
  since: number | undefined;
  until: number | undefined;
}

/** Postings to read. */
export interface PostingQuery extends WordQuery {
  /** False where only the documents matter, and not how often they have the words. */
  counted: boolean;
}

/** A segment with what a search needs of it. */
export interface Loaded extends Segment {
  held: SegmentDocuments;
  /** Lengths of the documents in the searched time. */
  lengths: Uint16Array | Uint32Array;
  /** By word of the query; the counts may be missing if they were not asked for. */
  postings: (Postings | null)[];
}

/** Places of some documents of a segment. */
export interface FoundPlaces {
  segment: Segment;
  places: Uint16Array;
}

export interface SearchBounds {
  documents: number;
  postings: number;
}

export class SegmentLoader {
  readonly #clickhouse: ClickHouse;
  readonly #cache = new DocumentCache();

  constructor(clickhouse: ClickHouse) {
    this.#clickhouse = clickhouse;
  }

  /**
   * Returns the segments with documents in the searched time, the newest first. Segment 0 is of texts
   * without a number.
   */
  async segments({ org_id, since, until }: WordQuery, signal: AbortSignal): Promise<Segment[]> {
    const rows = await readSegments(this.#clickhouse, { org_id, since_ms: since, until_ms: until }, { signal });
    const segments = rows
      .map(({ numbers, first, last, ...row }) => ({
        ...row,
        first: Number(first % SEGMENT_DOCS),
        last: Number(last % SEGMENT_DOCS),
        version: `${row.documents}:${row.words}:${numbers}`,
      }))
      .sort((a, b) => b.to_ms - a.to_ms || b.segment - a.segment);
    this.#cache.keepSegments(org_id, segments, { since, until });
    return segments;
  }

  /** Returns what `segments` does, and reads postings ahead. */
  async segmentsAhead(query: PostingQuery, signal: AbortSignal, postingsMax: number): Promise<Segment[]> {
    const [segments] = await Promise.all([this.segments(query, signal), this.#readAhead(query, signal, postingsMax)]);
    return segments;
  }

  /**
   * Reads the postings of the words in the segments that earlier searches found, while the segments
   * are read again: those that have not changed need no further read. Postings are written before
   * their documents, so those of a known version are complete.
   */
  async #readAhead(query: PostingQuery, signal: AbortSignal, postingsMax: number): Promise<void> {
    const known = this.#cache.segments(query.org_id).filter((segment) => isWithin(segment, query));
    const loaded = known.flatMap((segment): Loaded[] => {
      const held = this.#cache.documents(query.org_id, segment);
      return held === undefined ? [] : [loadedOf(query, segment, held)];
    });
    if (loaded.length > 0) await this.#postings(query, loaded, signal, postingsMax);
  }

  /**
   * Loads segments with their documents and postings; without the oldest ones if the words have too
   * many postings.
   */
  async load(
    query: PostingQuery,
    segments: readonly Segment[],
    signal: AbortSignal,
    postingsMax: number,
  ): Promise<Loaded[]> {
    const held = await this.#documents(query.org_id, segments, signal);
    const loaded = segments.flatMap((segment): Loaded[] => {
      const documents = held.get(segment.segment);
      if (documents === undefined) return [];
      return [loadedOf(query, segment, documents)];
    });
    for (let count = loaded.length; ; count = Math.floor(count / 2)) {
      const newest = loaded.slice(0, count);
      if ((await this.#postings(query, newest, signal, postingsMax)) || count <= 1) return newest;
    }
  }

  /**
   * Returns the keys of the traces of documents: from memory, or by number where few documents are of
   * segments that are not there, or with those of all documents of these segments.
   */
  async traces(org_id: string, found: readonly FoundPlaces[], signal: AbortSignal): Promise<KeySet> {
    const keys = new KeySet();
    const missing: FoundPlaces[] = [];
    const pauses = new Pauses(signal);
    for (const one of found) {
      const held = this.#cache.traces(org_id, one.segment);
      if (held === undefined) missing.push(one);
      else addKeys(keys, one, held);
      await pauses.give();
    }
    const documents = missing.reduce((sum, { places }) => sum + places.length, 0);
    if (documents > FEW_DOCUMENTS) await this.#tracesOfSegments(org_id, missing, keys, signal);
    else if (documents > 0) {
      const docs = missing.flatMap(({ segment, places }) => Array.from(places, (place) => docOf(segment, place)));
      for await (const { low, high } of readTracesOfDocuments(this.#clickhouse, { org_id, docs }, { signal }))
        keys.add(low, high);
    }
    return keys;
  }

  async #tracesOfSegments(
    org_id: string,
    found: readonly FoundPlaces[],
    keys: KeySet,
    signal: AbortSignal,
  ): Promise<void> {
    const pauses = new Pauses(signal);
    const sorted = found.toSorted((a, b) => a.segment.segment - b.segment.segment);
    for (let at = 0; at < sorted.length; at += SEGMENTS_AT_ONCE) {
      const group = new Map(sorted.slice(at, at + SEGMENTS_AT_ONCE).map((one) => [one.segment.segment, one]));
      const read = readTraceKeys(this.#clickhouse, rangeOf(org_id, [...group.keys()]), { signal });
      for await (const { segment: number, places, trace_keys } of read) {
        const one = group.get(number);
        if (one === undefined) continue;
        const held = keysByPlace(one.segment, places, trace_keys);
        this.#cache.keepTraces(org_id, one.segment, held);
        addKeys(keys, one, held);
        await pauses.give();
      }
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
      const read = readDocuments(this.#clickhouse, rangeOf(org_id, [...group.keys()]), { signal });
      for await (const { segment: number, places, lengths, times } of read) {
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
    { org_id, words, counted }: PostingQuery,
    segments: readonly Loaded[],
    signal: AbortSignal,
    postingsMax: number,
  ): Promise<boolean> {
    let count = 0;
    const missing = new Map<number, { segment: Loaded; lists: (PostingList | null)[] }>();
    const missingWords = new Set<number>();
    for (const segment of segments) {
      for (const [index, word] of words.entries()) {
        const known = this.#cache.postings(org_id, segment, word, counted);
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
        counted,
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
        this.#cache.keepPostings(org_id, segment, words[index] ?? '', postings, counted);
      }
    return true;
  }
}

const loadedOf = ({ words }: WordQuery, segment: Segment, held: SegmentDocuments): Loaded => ({
  ...segment,
  held,
  lengths: held.lengths,
  postings: words.map(() => null),
});

/** Returns the newest segments up to a number of documents; at least one. */
export function newestSegments(segments: readonly Segment[], documentsMax: number): Segment[] {
  let sum = 0;
  const end = segments.findIndex(({ documents }, index) => (sum += documents) > documentsMax && index > 0);
  return end === -1 ? [...segments] : segments.slice(0, end);
}

/** Returns the number of a document. */
export const docOf = ({ segment }: { segment: number }, place: number): bigint =>
  BigInt(segment) * SEGMENT_DOCS + BigInt(place);

/** @param segments ascending */
const rangeOf = (org_id: string, segments: readonly number[]) => ({
  org_id,
  segments,
  first: BigInt(segments[0] ?? 0) * SEGMENT_DOCS,
  last: BigInt((segments.at(-1) ?? 0) + 1) * SEGMENT_DOCS - 1n,
});

/** Returns keys by place, each as its lower and upper half. */
function keysByPlace({ first, last }: Segment, places: Uint16Array, keys: Uint32Array): Uint32Array {
  const byPlace = new Uint32Array((last - first + 1) * 2);
  for (let index = 0; index < places.length; index++) {
    const at = ((places[index] ?? 0) - first) * 2;
    byPlace[at] = keys[index * 2] ?? 0;
    byPlace[at + 1] = keys[index * 2 + 1] ?? 0;
  }
  return byPlace;
}

function addKeys(keys: KeySet, { segment, places }: FoundPlaces, byPlace: Uint32Array): void {
  for (const place of places) {
    const at = (place - segment.first) * 2;
    keys.add(byPlace[at] ?? 0, byPlace[at + 1] ?? 0);
  }
}
