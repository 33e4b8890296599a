// Returns one trace as the list of traces has it.
import type { ClickHouse } from '../../../sql/client/client.ts';
import type { TraceItem } from '../../http/trace_items.ts';
import { isComplete } from './complete.ts';
import { traceNotFound, type TraceDeps } from './deps.ts';
import { readModels, readTraceRows, type TraceRange, type TraceRow } from './store.ts';

const orNull = (text: string): string | null => (text === '' ? null : text);

/** Returns the item of a trace, and whether it was stored in full; null while its row has not landed. */
export async function readTraceItem(
  clickhouse: ClickHouse,
  range: TraceRange,
  signal: AbortSignal,
): Promise<{ item: TraceItem; sampled: boolean } | null> {
  const row = newestOf(await readTraceRows(clickhouse, range, { signal }));
  return row === null ? null : { item: itemOf(row), sampled: row.sampled };
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

function itemOf(row: TraceRow): TraceItem {
  return {
    trace_id: row.trace_id,
    root_span_name: orNull(row.root_span_name),
    agent_id: orNull(row.agent_id),
    outcome: row.outcome,
    duration_ms: row.duration_ms,
    input_tokens: row.input_tokens,
    output_tokens: row.output_tokens,
    cost_usd: row.cost_usd,
    started_at: row.started_at,
    ended_at: row.ended_at,
    tags: row.tags,
    span_count: row.spans,
    session_id: orNull(row.session_id),
    user_id: orNull(row.user_id),
  };
}
