// Finds where the spans of a trace id are: 404 if no organization has the trace, 403 if only
// another one has it.
import type { ClickHouse } from '../../../sql/client/client.ts';
import { ApiError } from '../../http/errors.ts';
import { readLookup, type TraceRange } from './store.ts';

/** Clients for the reads of one trace. */
export interface TraceReads {
  /** Reads all shards of the store. */
  clickhouse: ClickHouse;
  /** Returns a client of the shard that has all rows of a trace; see Store. */
  ofTrace: (org_id: string, trace_id: string) => ClickHouse;
}

/**
 * Finds a trace like locateTrace, but asks the shard of the trace first, and all shards only if it is not there.
 * @throws ApiError trace_not_found, cross_org_access
 */
export async function locateInShard(
  { clickhouse, ofTrace }: TraceReads,
  orgId: string,
  traceId: string,
  signal: AbortSignal,
): Promise<TraceRange> {
  const own = ofTrace(orgId, traceId);
  if (own !== clickhouse) {
    const owners = await readLookup(own, { trace_id: traceId }, { signal });
    const found = owners.find((owner) => owner.org_id === orgId);
    if (found !== undefined) return rangeOf(traceId, found);
  }
  return locateTrace(clickhouse, orgId, traceId, signal);
}

/** @throws ApiError trace_not_found, cross_org_access */
export async function locateTrace(
  clickhouse: ClickHouse,
  orgId: string,
  traceId: string,
  signal: AbortSignal,
): Promise<TraceRange> {
  const owners = await readLookup(clickhouse, { trace_id: traceId }, { signal });
  const own = owners.find((owner) => owner.org_id === orgId);
  if (own !== undefined) return rangeOf(traceId, own);
  if (owners.length > 0) throw new ApiError('cross_org_access', 'The trace belongs to another organization.');
  throw traceNotFound();
}

const rangeOf = (trace_id: string, { org_id, from_ms, to_ms }: Omit<TraceRange, 'trace_id'>): TraceRange => ({
  org_id,
  trace_id,
  from_ms,
  to_ms,
});

export function traceNotFound(): ApiError {
  return new ApiError('trace_not_found', 'There is no trace with this id.');
}
