// Finds the traces of filters that read spans or texts once for all statements of a request: its page and its total, each
// facet and each series would read them again.
import type { ClickHouse } from '../../../sql/client/client.ts';
import type { QueryOptions } from '../../../sql/client/query.ts';
import type { ListFilters } from './filters.ts';
import { readByAttributes, readByWords } from './store.ts';
import { tracesWithWords, type WordsDeps } from './words.ts';

/** Traces up to which a statement takes their keys, 20 bytes each, in place of the filter. */
const TRACES_MAX = 4000;

/** Returns the filters with the keys of the traces in place of `words` and attributes that few traces have. */
export async function foundOnce(
  deps: WordsDeps,
  filters: ListFilters,
  options: QueryOptions & { signal: AbortSignal },
  tracesMax = TRACES_MAX,
): Promise<ListFilters> {
  const [worded, attributed] = await Promise.all([
    filters.words === undefined ? null : byWords(deps, { ...filters, rows: tracesMax + 1 }, options, fewOf(tracesMax)),
    tracesWithAttributes(deps.clickhouse, filters, options, tracesMax),
  ]);
  const withWords = worded === null ? filters : { ...filters, words: undefined, trace_keys: [...worded] };
  return amongTraces(withWords, attributed);
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

/** Returns the keys of the traces that have the words; null if they are too many. */
async function byWords(
  deps: WordsDeps,
  params: ListFilters & { rows: number },
  options: QueryOptions & { signal: AbortSignal },
  few: (found: readonly { trace_key: string }[]) => string[] | null,
): Promise<readonly string[] | null> {
  const { filters, among } = await tracesWithWords({ ...deps, keysMax: params.rows - 1 }, params, options.signal);
  // Millions of keys are not turned into text only to be counted.
  if (among !== null) return null;
  return filters.words === undefined
    ? (filters.trace_keys ?? [])
    : few(await readByWords(deps.clickhouse, params, options));
}
