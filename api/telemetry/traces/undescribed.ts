// Leaves out of filters the reads of spans that no trace of the asked time needs.
import type { ClickHouse } from '../../../sql/client/client.ts';
import type { QueryOptions } from '../../../sql/client/query.ts';
import type { ListFilters } from './filters.ts';
import { readHasUndescribed } from './store.ts';

/**
 * An organization without such traces is asked about again after this time. Only workers of an
 * older version write them, while a new version is rolled out.
 */
const KNOWN_MS = 10_000;
/** Organizations that are remembered; the oldest entry goes first. */
const KNOWN_MAX = 10_000;

/** Organizations whose traces are all described, with the time until which that is known. */
const known = new WeakMap<ClickHouse, Map<string, number>>();

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
  const needless = { ...filters, undescribed: undefined };
  const until = known.get(clickhouse) ?? new Map<string, number>();
  if ((until.get(org_id) ?? 0) > performance.now()) return needless;
  const ever = await readHasUndescribed(clickhouse, { org_id }, options);
  if (ever.length === 0) {
    known.set(clickhouse, remembered(until, org_id));
    return needless;
  }
  if (since_ms === undefined && until_ms === undefined) return filters;
  const found = await readHasUndescribed(clickhouse, { org_id, since_ms, until_ms }, options);
  return found.length === 0 ? needless : filters;
}

function remembered(until: Map<string, number>, org_id: string): Map<string, number> {
  until.delete(org_id);
  until.set(org_id, performance.now() + KNOWN_MS);
  const [oldest] = until.keys();
  if (until.size > KNOWN_MAX && oldest !== undefined) until.delete(oldest);
  return until;
}
