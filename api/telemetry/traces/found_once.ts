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
  const [worded, attributed] = await Promise.all([
    filters.words === undefined ? null : byWords(deps, params, options),
    filters.attributed === undefined ? null : readByAttributes(clickhouse, params, options),
  ]);
  const few = [worded, attributed].flatMap((found) =>
    found === null || found.length > tracesMax ? [] : [new Set(found.map(({ trace_key }) => trace_key))],
  );
  const [first, ...others] = few;
  if (first === undefined) return filters;
  return {
    ...filters,
    trace_keys: [...others.reduce((both, other) => both.intersection(other), first)],
    ...(worded === null || worded.length > tracesMax ? {} : { words: undefined }),
    ...(attributed === null || attributed.length > tracesMax ? {} : { attributed: undefined, attributes: [] }),
  };
}

/** Returns the traces that have the words, each once; at least one more than the maximum if there are more. */
async function byWords(
  deps: WordsDeps,
  params: ListFilters & { rows: number },
  options: QueryOptions & { signal: AbortSignal },
): Promise<{ trace_key: string }[]> {
  const { filters, among } = await tracesWithWords({ ...deps, keysMax: params.rows - 1 }, params, options.signal);
  const keys = filters.words === undefined ? filters.trace_keys : among?.keys();
  return keys?.map((trace_key) => ({ trace_key })) ?? readByWords(deps.clickhouse, params, options);
}
