// Finds where the spans of a trace id are: 404 if no organization has the trace, 403 if only
// another one has it.
import type { ClickHouse } from '../../../sql/client/client.ts';
import { ApiError } from '../../http/errors.ts';
import { readLookup, type TraceRange } from './store.ts';

/** @throws ApiError trace_not_found, cross_org_access */
export async function locateTrace(
  clickhouse: ClickHouse,
  orgId: string,
  traceId: string,
  signal: AbortSignal,
): Promise<TraceRange> {
  const owners = await readLookup(clickhouse, { trace_id: traceId }, { signal });
  const own = owners.find((owner) => owner.org_id === orgId);
  if (own !== undefined) return { org_id: orgId, trace_id: traceId, from_ms: own.from_ms, to_ms: own.to_ms };
  if (owners.length > 0) throw new ApiError('cross_org_access', 'The trace belongs to another organization.');
  throw traceNotFound();
}

export function traceNotFound(): ApiError {
  return new ApiError('trace_not_found', 'There is no trace with this id.');
}
