// Finds traces to compare with: those of the same agent and name.
import { get } from '../../client/api.ts';
import { escapedValue } from '../../lists/list_url.ts';
import type { TraceItem } from '../../lists/trace_data.ts';

/** The trace that others are compared with. */
export interface Compared {
  trace_id: string;
  root_span_name: string | null;
  agent_id: string | null;
  started_at: string;
}

const SHOWN_MAX = 30;

/** Returns the filters for traces of the same agent and name. */
function sameKind({ root_span_name, agent_id }: Compared): Record<string, string> {
  return {
    ...(agent_id === null ? {} : { agent_id: escapedValue(agent_id) }),
    ...(root_span_name === null || root_span_name === '' ? {} : { root_span_name: escapedValue(root_span_name) }),
  };
}

async function others(
  org_id: string,
  trace: Compared,
  query: Record<string, string>,
  limit: number,
  signal?: AbortSignal,
): Promise<TraceItem[]> {
  const params = { ...sameKind(trace), ...query, limit: String(limit + 1) };
  const { data } = await get(org_id, '/v1/traces', { query: params as object }, signal === undefined ? {} : { signal });
  return data.filter(({ trace_id }) => trace_id !== trace.trace_id).slice(0, limit);
}

/** Returns the newest success before a trace, or else the newest success of all; null without one. */
export async function lastSuccess(org_id: string, trace: Compared): Promise<string | null> {
  const [before] = await others(org_id, trace, { outcome: 'success', until: trace.started_at }, 1);
  if (before !== undefined) return before.trace_id;
  const [any] = await others(org_id, trace, { outcome: 'success' }, 1);
  return any?.trace_id ?? null;
}

/** Returns the trace of the same agent and name before a trace; null without one. */
export async function previousRun(org_id: string, trace: Compared): Promise<string | null> {
  const [before] = await others(org_id, trace, { until: trace.started_at }, 1);
  return before?.trace_id ?? null;
}

/** Returns the newest traces of the same agent and name. */
export const candidatesOf = (org_id: string, trace: Compared, signal: AbortSignal): Promise<TraceItem[]> =>
  others(org_id, trace, {}, SHOWN_MAX, signal);

/** Returns the address of a comparison. */
export const comparePath = (org_id: string, baseline: string, candidate: string): string =>
  `/o/${[org_id, 'compare', baseline, candidate].map(encodeURIComponent).join('/')}`;
