// Leaves out of filters the reads of spans that no trace of the asked time needs.
import type { ClickHouse } from '../../../sql/client/client.ts';
import type { QueryOptions } from '../../../sql/client/query.ts';
import type { ListFilters } from './filters.ts';
import { readHasUndescribed } from './store.ts';

/**
 * Returns the filters without their reads of spans if the lists in `traces` hold the values of all
 * traces of the asked time.
 */
export async function withoutNeedlessReads(
  clickhouse: ClickHouse,
  filters: ListFilters,
  options: QueryOptions,
): Promise<ListFilters> {
  if (filters.undescribed === undefined) return filters;
  const { org_id, since_ms, until_ms } = filters;
  const found = await readHasUndescribed(clickhouse, { org_id, since_ms, until_ms }, options);
  return found.length === 0 ? { ...filters, undescribed: undefined } : filters;
}
