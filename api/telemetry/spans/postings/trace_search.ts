// Finds the traces of documents with all of some words, by their postings. The list, the facets and the series of one
// page ask the same at nearly the same time, and its next pages ask again: searches that run beside each other share
// one, and what a search has found is kept while no segment changes. Every request asks for the segments itself, so what it
// gets has each document that could be found when it came, and none that had been deleted.
import { LRUCache } from 'lru-cache';
import { SharedWork } from '../../../../ops/platform/shared_work.ts';
import { Pauses } from '../../../../sql/client/pauses.ts';
import type { KeySet } from './key_set.ts';
import { placesWithAll } from './intersection.ts';
import type { FoundPlaces, SearchBounds, SegmentLoader, WordQuery } from './segment_loader.ts';
import { lengthsWithin, type Segment } from './segments.ts';

/** Documents whose traces a search finds. */
const MATCHES_MAX = 4_000_000;
/** Bytes of the sets of traces that are kept; one of half a million traces has 8 to 16 MB. */
const KEPT_BYTES_MAX = 32 * 1024 * 1024;
/** Bytes of a kept search beside its set and its version, roughly. */
const ENTRY_BYTES = 500;

interface Found {
  /** Names the searched segments and their versions. */
  version: string;
  /** Null where the search would exceed its bounds. */
  keys: KeySet | null;
}

export class TraceSearch {
  readonly #loader: SegmentLoader;
  readonly #running: SharedWork<Found>;
  readonly #kept = new LRUCache<string, Found>({
    maxSize: KEPT_BYTES_MAX,
    sizeCalculation: ({ version, keys }) => version.length + (keys?.bytes ?? 0) + ENTRY_BYTES,
  });

  /** @param callersMax requests that share a search */
  constructor(loader: SegmentLoader, callersMax: number) {
    this.#loader = loader;
    this.#running = new SharedWork(callersMax);
  }

  /** Returns the keys of the traces that have a document with all of the words; null if that takes more than the bounds. */
  async find(query: WordQuery, signal: AbortSignal, bounds: SearchBounds): Promise<KeySet | null> {
    const search = searchOf(query, bounds);
    const kept = this.#kept.get(search);
    const asked = { ...query, counted: false };
    const { result, joined } =
      kept === undefined
        ? this.#running.run(search, signal, async (shared) => {
            const segments = await this.#loader.segmentsAhead(asked, shared, bounds.postings);
            return this.#findWithin(asked, segments, shared, bounds);
          })
        : { result: Promise.resolve(kept), joined: true };
    if (!joined) return (await result).keys;
    const [found, segments] = await Promise.all([result, this.#loader.segments(query, signal)]);
    const version = versionOf(segments);
    if (found.version === version) return found.keys;
    const changed = this.#running.run(`${search} ${version}`, signal, (shared) =>
      this.#findWithin(asked, segments, shared, bounds),
    );
    return (await changed.result).keys;
  }

  async #findWithin(
    query: WordQuery & { counted: boolean },
    segments: readonly Segment[],
    signal: AbortSignal,
    bounds: SearchBounds,
  ): Promise<Found> {
    const found = { version: versionOf(segments), keys: await this.#keys(query, segments, signal, bounds) };
    this.#kept.set(searchOf(query, bounds), found);
    return found;
  }

  async #keys(
    query: WordQuery & { counted: boolean },
    segments: readonly Segment[],
    signal: AbortSignal,
    bounds: SearchBounds,
  ): Promise<KeySet | null> {
    const { org_id, since, until } = query;
    const all = segments.filter(({ segment }) => segment > 0);
    const documents = all.reduce((sum, segment) => sum + segment.documents, 0);
    if (documents > bounds.documents) return null;
    const loaded = await this.#loader.load(query, all, signal, bounds.postings);
    if (loaded.length < all.length) return null;
    const pauses = new Pauses(signal);
    const found: FoundPlaces[] = [];
    let matches = 0;
    for (const segment of loaded) {
      const places = placesWithAll(segment, lengthsWithin(segment, segment.held, { since, until }));
      matches += places.length;
      if (matches > MATCHES_MAX) return null;
      if (places.length > 0) found.push({ segment, places });
      await pauses.give();
    }
    return this.#loader.traces(org_id, found, signal);
  }
}

/** Returns the name of a search: words in any order find the same traces. */
const searchOf = ({ org_id, words, since, until }: WordQuery, { documents, postings }: SearchBounds): string =>
  JSON.stringify([org_id, since ?? null, until ?? null, documents, postings, ...words.toSorted()]);

const versionOf = (segments: readonly Segment[]): string =>
  segments.map(({ segment, version }) => `${segment}:${version}`).join(' ');
