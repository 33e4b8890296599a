// Reads given traces as the list shows them, with which of several filters each matches: one read
// for all that follow the traces of an organization, whatever their filters are.
import type { ClickHouse } from '../../../sql/client/client.ts';
import { readJudgedBounds } from '../../../sql/stores/judging.ts';
import { type TraceItem, traceItemOf } from '../../http/trace_items.ts';
import type { ListFilters } from './filters.ts';
import { foldPairs } from './pairs.ts';
import { readChangedRows } from './store.ts';

export interface ChangedTrace {
  item: TraceItem;
  /** True at the place of each filter that the trace matches. */
  matched: boolean[];
}

/** Returns those of the traces that the organization has, newest first. */
export async function readChangedTraces(
  clickhouse: ClickHouse,
  org_id: string,
  trace_ids: readonly string[],
  filters: readonly ListFilters[],
  signal: AbortSignal,
): Promise<ChangedTrace[]> {
  const bounds = await readJudgedBounds(clickhouse, { org_id, trace_ids: [...trace_ids] }, { signal });
  if (bounds.length === 0) return [];
  const from_ms = Math.min(...bounds.map((bound) => bound.from_ms));
  const to_ms = Math.max(...bounds.map((bound) => bound.to_ms));
  // Filters on spans and scores read other tables: the earliest start bounds those reads.
  const bounded = filters.map((filter) => ({ ...filter, since_ms: Math.max(from_ms, filter.since_ms ?? from_ms) }));
  const trace_keys = bounds.map(({ trace_key }) => trace_key);
  const rows = await readChangedRows(clickhouse, { org_id, trace_keys, from_ms, to_ms, filters: bounded }, { signal });
  const matches = new Map(rows.map((row) => [`${row.trace_key} ${row.version}`, row.matched]));
  return foldPairs(rows, false).live.map((row) => ({
    item: traceItemOf(row),
    matched: (matches.get(`${row.trace_key} ${row.version}`) ?? []).map((flag) => flag === 1),
  }));
}
