// Counts failing traces. It takes traces whose completion with a failure was published, writes rows
// of incident_traces, and returns the clusters with new traces. Guarantees: a trace is counted
// once, in one cluster, however often its completion is published. Traces counted before are
// returned again, as the worker that counted them may have died right after.
import type { Logger } from '../../ops/platform/logger.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import { type FailingTrace, LOOKUP_MAX, readCounted, writeFailingTraces } from '../../sql/stores/incidents.ts';
import { keyOf, lookUpFailures, type ReportedFailure } from './lookup.ts';

/**
 * A trace that is missing may have landed on another replica of the store; after this long it
 * counts as deleted.
 */
const MISSING_MS_MAX = 60_000;

/** A cluster with new traces. */
export interface Touched {
  org_id: string;
  cluster_id: string;
  /** Time at which the earliest of the new traces failed, milliseconds since the epoch. */
  from_ms: number;
}

/** Some traces have not landed yet. The others are counted; the batch is retried for these. */
class TracesMissing extends Error {}

interface CounterDeps {
  clickhouse: ClickHouse;
  logger: Logger;
  /** Milliseconds since the epoch. */
  now: () => number;
}

/**
 * Resolves when the traces are on disk.
 * @throws StoreUnavailable or TracesMissing: the whole batch is to be retried
 */
export async function countFailures(deps: CounterDeps, reported: readonly ReportedFailure[]): Promise<Touched[]> {
  const distinct = [...new Map(reported.map((failure) => [keyOf(failure), failure])).values()];
  const touched: Touched[] = [];
  for (let at = 0; at < distinct.length; at += LOOKUP_MAX)
    touched.push(...(await countSome(deps, distinct.slice(at, at + LOOKUP_MAX))));
  return touched;
}

async function countSome(
  { clickhouse, logger, now }: CounterDeps,
  reported: readonly ReportedFailure[],
): Promise<Touched[]> {
  const byKey = new Map(reported.map((failure) => [keyOf(failure), failure]));
  const counted = await readCounted(clickhouse, {
    orgs: reported.map(({ org_id }) => org_id),
    traces: reported.map(({ trace_id }) => trace_id),
  });
  for (const row of counted) byKey.delete(keyOf(row));
  const found = byKey.size === 0 ? [] : await lookUpFailures(clickhouse, [...byKey.values()]);
  const rows = found.map(({ ended_ms, ...failure }): FailingTrace => {
    const told_at = byKey.get(keyOf(failure))?.told_at ?? ended_ms;
    byKey.delete(keyOf(failure));
    // A sender's clock may be ahead: a trace cannot fail later than its failure was published.
    return { ...failure, at_ms: Math.min(ended_ms, told_at) };
  });
  if (rows.length > 0) await writeFailingTraces(clickhouse, rows);
  const fresh = [...byKey.values()].filter(({ told_at }) => now() - told_at < MISSING_MS_MAX);
  if (fresh.length > 0) throw new TracesMissing(`${fresh.length} traces that failed have not landed yet`);
  if (byKey.size > 0) logger.info({ traces: byKey.size }, 'traces that failed were deleted; no incident counts them');
  return [...counted, ...rows].map(({ org_id, cluster_id, at_ms }) => ({ org_id, cluster_id, from_ms: at_ms }));
}
