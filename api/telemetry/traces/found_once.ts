// Finds the traces of filters that read spans or texts once for all statements of a request: each facet and each series would
// read them again. A list, which has two statements that run beside each other, would only wait longer.
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
  const { clickhouse } = deps;
  const params = { ...filters, rows: tracesMax + 1 };
  const few = (found: readonly { trace_key: string }[]) =>
    found.length > tracesMax ? null : found.map(({ trace_key }) => trace_key);
  const [worded, attributed] = await Promise.all([
    filters.words === undefined ? null : byWords(deps, params, options, few),
    filters.attributed === undefined ? null : readByAttributes(clickhouse, params, options).then(few),
  ]);
  const [first, ...others] = [worded, attributed].flatMap((keys) => (keys === null ? [] : [new Set(keys)]));
  if (first === undefined) return filters;
  return {
    ...filters,
    trace_keys: [...others.reduce((both, other) => both.intersection(other), first)],
    ...(worded === null ? {} : { words: undefined }),
    ...(attributed === null ? {} : { attributed: undefined, attributes: [] }),
  };
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
