// Returns one trace as the list of traces has it.
import type { ClickHouse } from '../../../sql/client/client.ts';
import { type TraceItem, traceItemOf } from '../../http/trace_items.ts';
import { isComplete } from './complete.ts';
import { traceNotFound, type TraceDeps } from './deps.ts';
import { readLocatedRows, readModels, readTraceRows, type TraceRange, type TraceRow } from './store.ts';

/** The item of a trace, and whether it was stored in full. */
export interface FoundItem {
  item: TraceItem;
  sampled: boolean;
}

/** Returns the item of a trace; null while its row has not landed. */
export async function readTraceItem(
  clickhouse: ClickHouse,
  range: TraceRange,
  signal: AbortSignal,
): Promise<FoundItem | null> {
  const row = newestOf(await readTraceRows(clickhouse, range, { signal }));
  return row === null ? null : { item: traceItemOf(row), sampled: row.sampled };
}

/**
 * Returns the item of a trace and the range of its spans, in one statement; a null item while its row has not landed.
 * @throws ApiError trace_not_found, cross_org_access
 */
export async function locateTraceItem(
  { clickhouse, locate }: TraceDeps,
  org_id: string,
  trace_id: string,
  signal: AbortSignal,
): Promise<{ range: TraceRange; found: FoundItem | null }> {
  const row = newestOf(await readLocatedRows(clickhouse, { org_id, trace_id }, { signal }));
  if (row === null) return { range: await locate(org_id, trace_id, signal), found: null };
  const { from_ms, to_ms, sampled } = row;
  return { range: { org_id, trace_id, from_ms, to_ms }, found: { item: traceItemOf(row), sampled } };
}

/** Serves GET /v1/traces/{trace_id}. */
export async function readTraceDetail(deps: TraceDeps, orgId: string, traceId: string, signal: AbortSignal) {
  const range = await deps.locate(orgId, traceId, signal);
  const [found, [spans]] = await Promise.all([
    readTraceItem(deps.clickhouse, range, signal),
    readModels(deps.clickhouse, range, { signal }),
  ]);
  if (found === null || spans === undefined) throw traceNotFound();
  const arrival = { received_ms: spans.received_ms, rooted: spans.roots > 0 };
  return {
    data: {
      ...found.item,
      complete: isComplete(arrival, deps.completeRule, deps.now()),
      sampled: found.sampled,
      models: spans.models,
    },
  };
}

/** Returns the state that remains when the signs of each version are added up; null if none does. */
function newestOf<Row extends TraceRow>(rows: readonly Row[]): Row | null {
  const signs = new Map<string, number>();
  for (const { version, sign } of rows) signs.set(version, (signs.get(version) ?? 0) + sign);
  return rows.find(({ version }) => (signs.get(version) ?? 0) > 0) ?? null;
}
