// Finds the traces of filters that read spans or texts once for all statements of a request: each facet and each series would
// read them again. A list, which has two statements that run beside each other, would only wait longer.
import type { ClickHouse } from '../../../sql/client/client.ts';
import type { QueryOptions } from '../../../sql/client/query.ts';
import type { ListFilters } from './filters.ts';
import { readByAttributes, readByWords } from './store.ts';

/** Traces up to which a statement takes their keys, 20 bytes each, in place of the filter. */
const TRACES_MAX = 4000;

/** Returns the filters with the keys of the traces in place of `words` and attributes that few traces have. */
export async function foundOnce(
  clickhouse: ClickHouse,
  filters: ListFilters,
  options: QueryOptions,
  tracesMax = TRACES_MAX,
): Promise<ListFilters> {
  const params = { ...filters, rows: tracesMax + 1 };
  const [worded, attributed] = await Promise.all([
    filters.words === undefined ? null : readByWords(clickhouse, params, options),
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
