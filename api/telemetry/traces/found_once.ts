// Finds the traces of filters that read spans or texts once for all statements of a request: its page and its total, each
// facet and each series would read them again.
import type { ClickHouse } from '../../../sql/client/client.ts';
import type { QueryOptions } from '../../../sql/client/query.ts';
import type { ListFilters } from './filters.ts';
import { readByAttributes, readByWords } from './store.ts';
import { keyParts, tracesWithWords, type WordsDeps } from './words.ts';

/** Traces up to which a statement takes their keys, 20 bytes each, in place of the filter. */
const TRACES_MAX = 4000;
/**
 * Traces that have the words up to which a statement takes their keys as a set: 11 bytes each, and some 200 in the engine. Facets
 * send it with some twenty statements.
 */
const SET_MAX = 100_000;
/** A larger set leaves out no granule, and the engine would sort it for nothing, which takes longer than the read. */
export const INDEXED_SET_MAX = 10_000;

/**
 * Returns the filters with the keys of the traces in place of attributes that few traces have, and of `words` unless the
 * store alone can find so many.
 */
export async function foundOnce(
  deps: WordsDeps,
  filters: ListFilters,
  options: QueryOptions & { signal: AbortSignal },
  tracesMax = deps.keysMax ?? TRACES_MAX,
  setMax = SET_MAX,
): Promise<ListFilters> {
  const [worded, attributed] = await Promise.all([
    filters.words === undefined ? filters : byWords(deps, filters, options, { tracesMax, setMax }),
    tracesWithAttributes(deps.clickhouse, filters, options, tracesMax),
  ]);
  return amongTraces(worded, attributed);
}

const fewOf = (tracesMax: number) => (found: readonly { trace_key: string }[]) =>
  found.length > tracesMax ? null : found.map(({ trace_key }) => trace_key);

/** Returns the keys of the traces that have the attributes; null without attributes, and if the traces are too many. */
export async function tracesWithAttributes(
  clickhouse: ClickHouse,
  filters: ListFilters,
  options: QueryOptions,
  tracesMax = TRACES_MAX,
): Promise<readonly string[] | null> {
  if (filters.attributed === undefined) return null;
  return fewOf(tracesMax)(await readByAttributes(clickhouse, { ...filters, rows: tracesMax + 1 }, options));
}

/** Returns the filters with the keys of the traces that have the attributes, null if unknown, in place of these. */
export function amongTraces(filters: ListFilters, attributed: readonly string[] | null): ListFilters {
  if (attributed === null) return filters;
  const known = filters.trace_keys === undefined ? null : new Set(filters.trace_keys.map(String));
  const keys = known === null ? [...attributed] : attributed.filter((key) => known.has(key));
  return { ...filters, trace_keys: keys, attributed: undefined, attributes: [] };
}

/** Returns the filters with the keys of the traces that have the words in place of these, unless they are too many. */
async function byWords(
  deps: WordsDeps,
  asked: ListFilters,
  options: QueryOptions & { signal: AbortSignal },
  { tracesMax, setMax }: { tracesMax: number; setMax: number },
): Promise<ListFilters> {
  const { filters, among } = await tracesWithWords({ ...deps, keysMax: tracesMax }, asked, options.signal);
  if (among !== null) return among.size > setMax ? asked : { ...filters, words: undefined, trace_set: keyParts(among) };
  if (filters.words === undefined) return filters;
  const few = fewOf(tracesMax)(await readByWords(deps.clickhouse, { ...asked, rows: tracesMax + 1 }, options));
  return few === null ? asked : { ...asked, words: undefined, trace_keys: few };
}
