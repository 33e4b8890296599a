// Returns one trace as the list of traces has it.
import type { ClickHouse } from '../../../sql/client/client.ts';
import { type TraceItem, traceItemOf } from '../../http/trace_items.ts';
import { isComplete } from './complete.ts';
import { traceNotFound, type TraceDeps } from './deps.ts';
import { readModels, readTraceRows, type TraceRange, type TraceRow } from './store.ts';

/** Returns the item of a trace, and whether it was stored in full; null while its row has not landed. */
export async function readTraceItem(
  clickhouse: ClickHouse,
  range: TraceRange,
  signal: AbortSignal,
): Promise<{ item: TraceItem; sampled: boolean } | null> {
  const row = newestOf(await readTraceRows(clickhouse, range, { signal }));
  return row === null ? null : { item: traceItemOf(row), sampled: row.sampled };
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
function newestOf(rows: readonly TraceRow[]): TraceRow | null {
  const signs = new Map<string, number>();
  for (const { version, sign } of rows) signs.set(version, (signs.get(version) ?? 0) + sign);
  return rows.find(({ version }) => (signs.get(version) ?? 0) > 0) ?? null;
}
