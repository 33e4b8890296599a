// Agents as their screens read them: pages of the registry, numbers of 7 days by agent, and the ids that
// send events without a registration.
import { infiniteQueryOptions, queryOptions, useQueries } from '@tanstack/react-query';
import { type Answer, apiQuery, get, send } from '../../client/api.ts';
import { FRESH } from '../../client/query_client.ts';

const LIST = '/orgs/{org_id}/agents';
const SENDERS = '/orgs/{org_id}/unregistered-agents';
/** Most values of one filter of an analytics query, so the numbers of a page are one query. */
const PAGE = 100;
const DAY_MS = 86_400_000;
export const DAYS = 7;

export type Agent = Answer<'/orgs/{org_id}/agents/{agent_id}'>['data'];

interface AgentFilters {
  name: string;
  framework: string | null;
  archived: boolean;
}

/** Describes the pages of the registry, the newest registration first. */
export const agentsQuery = (org_id: string, { name, framework, archived }: AgentFilters) => {
  const filters = {
    ...(name === '' ? {} : { name }),
    ...(framework === null ? {} : { framework: framework as never }),
    ...(archived ? { archived: 'true' as const } : {}),
  };
  return infiniteQueryOptions({
    queryKey: [org_id, LIST, 'pages', filters],
    queryFn: ({ pageParam, signal }) =>
      get(org_id, LIST, { path: { org_id }, query: { ...filters, limit: PAGE, offset: pageParam } }, { signal }),
    initialPageParam: 0,
    getNextPageParam: ({ meta }) => (meta.has_more ? meta.page * meta.per_page : null),
  });
};

export const agentQuery = (org_id: string, agent_id: string) =>
  queryOptions({
    ...apiQuery(org_id, '/orgs/{org_id}/agents/{agent_id}', { path: { org_id, agent_id } }),
    staleTime: FRESH.list,
  });

/** Describes the ids that sent events in 7 days and are not registered. */
export const sendersQuery = (org_id: string) =>
  queryOptions({
    ...apiQuery(org_id, SENDERS, { path: { org_id }, query: { days: DAYS } }),
    staleTime: FRESH.facets,
  });

/** Numbers of an agent in 7 days. */
export interface AgentNumbers {
  traces: number;
  error_rate: number | null;
  cost_usd: number;
  tokens: number;
}
const NO_TRACES: AgentNumbers = { traces: 0, error_rate: null, cost_usd: 0, tokens: 0 };

/**
 * Returns the numbers of the agents of each page by their id.
 * @param enabled false for a person who may not read traces and costs
 */
export function useAgentNumbers(
  org_id: string,
  pages: readonly (readonly { agent_id: string }[])[],
  enabled: boolean,
): { numbers: ReadonlyMap<string, AgentNumbers>; error: Error | null; refetch: () => void } {
  return useQueries({
    queries: pages.map((agents) => {
      const ids = agents.map(({ agent_id }) => agent_id);
      return {
        queryKey: [org_id, '/v1/analytics/query', 'agents', ids],
        queryFn: ({ signal }: { signal: AbortSignal }) => readNumbers(org_id, ids, signal),
        enabled: enabled && ids.length > 0,
        staleTime: FRESH.facets,
      };
    }),
    combine: (reads) => ({
      numbers: new Map(reads.flatMap(({ data }) => [...(data ?? [])])),
      error: reads.find(({ error }) => error !== null)?.error ?? null,
      refetch: () => {
        for (const read of reads) if (read.error !== null) void read.refetch();
      },
    }),
  });
}

async function readNumbers(
  org_id: string,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<Map<string, AgentNumbers>> {
  const body = {
    view: 'traces' as const,
    measures: [
      { measure: 'count' },
      { measure: 'error_rate' },
      { measure: 'cost_usd', agg: 'sum' as const },
      { measure: 'total_tokens', agg: 'sum' as const },
    ],
    group_by: ['agent_id'],
    filters: [{ field: 'agent_id', op: 'in' as const, value: [...ids] }],
    since: new Date(Date.now() - DAYS * DAY_MS).toISOString(),
    top: PAGE,
  };
  const { data } = await send(org_id, 'post', '/v1/analytics/query', { body, signal });
  const numbers = new Map(ids.map((id) => [id, NO_TRACES]));
  for (const [agent_id, ...values] of data.rows) {
    const [traces = 0, error_rate = null, cost_usd = 0, tokens = 0] = values.map(Number);
    if (typeof agent_id === 'string') numbers.set(agent_id, { traces, error_rate, cost_usd, tokens });
  }
  return numbers;
}

export const agentPath = (org_id: string, agent_id: string): string =>
  `/o/${encodeURIComponent(org_id)}/agents/${encodeURIComponent(agent_id)}`;
