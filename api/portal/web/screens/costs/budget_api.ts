// The reads and changes of budgets.
import { type QueryClient, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type Answer, apiQuery, send } from '../../client/api.ts';
import { randomId } from '../../client/random_id.ts';
import { useOrganization } from '../../client/session.ts';
import { toast } from '../../ui/toast.tsx';
import type { Resource } from './amounts.ts';

export type Budget = Answer<'/v1/budgets'>['data'];
export type ResourceBudget = Budget['tokens'];
export type BudgetPreview = Answer<'/v1/budgets/preview'>['data'];

const FRESH_MS = 10_000;
const DAY_MS = 86_400_000;
/** Most days of GET /v1/cost/series. */
const SERIES_DAYS_MAX = 365;

export interface Limits {
  soft_limit: number | null;
  hard_limit: number | null;
}

/** The resources that an agent can have limits of its own on. */
export const AGENT_RESOURCES = ['tokens', 'cost_usd'] as const;
export type AgentResource = (typeof AGENT_RESOURCES)[number];

/** A limit to change: of a resource of the organization or of an agent. */
export type Target = { resource: Resource; agent_id: null } | { resource: AgentResource; agent_id: string };

export function useBudget() {
  const { org_id } = useOrganization();
  return useQuery({ ...apiQuery(org_id, '/v1/budgets', {}), staleTime: FRESH_MS, select: ({ data }) => data });
}

export function useAgentBudgets() {
  const { org_id } = useOrganization();
  return useQuery({
    ...apiQuery(org_id, '/orgs/{org_id}/budget/agents', { path: { org_id } }),
    staleTime: FRESH_MS,
    select: ({ data }) => data,
  });
}

/** Returns the costliest agents since the period began, with their tokens. */
export function useCostlyAgents(period_start: string | undefined) {
  const { org_id } = useOrganization();
  const since = period_start === undefined ? 0 : Math.ceil((Date.now() - Date.parse(period_start)) / DAY_MS);
  const days = Math.min(SERIES_DAYS_MAX, Math.max(1, since));
  return useQuery({
    ...apiQuery(org_id, '/v1/cost/series', { query: { days, group_by: ['agent_id'] } }),
    enabled: period_start !== undefined,
    staleTime: FRESH_MS,
    select: ({ data }) => data.groups,
  });
}

/** Returns what a hard limit would have done in the current period and the two before; null asks nothing. */
export function usePreview({ resource, agent_id }: Target, hard_limit: number | null) {
  const { org_id } = useOrganization();
  const agent = agent_id === null || agent_id === '' ? {} : { agent_id };
  return useQuery({
    ...apiQuery(org_id, '/v1/budgets/preview', { query: { resource, hard_limit: hard_limit ?? 0, ...agent } }),
    enabled: hard_limit !== null && agent_id !== '',
    staleTime: FRESH_MS,
    placeholderData: (before) => before,
    select: ({ data }) => data,
  });
}

async function saveLimits(
  org_id: string,
  { resource, agent_id }: Target,
  limits: Limits,
  idempotencyKey: string,
): Promise<void> {
  const params = { path: { org_id } };
  if (agent_id === null) await send(org_id, 'put', '/orgs/{org_id}/budget', { params, body: { [resource]: limits } });
  else
    await send(org_id, 'post', '/orgs/{org_id}/budget/agents', {
      params,
      body: { agent_id, [resource]: limits },
      idempotencyKey,
    });
}

const readAgain = async (queries: QueryClient, org_id: string): Promise<void> => {
  await Promise.all([
    queries.invalidateQueries({ queryKey: [org_id, '/v1/budgets'] }),
    queries.invalidateQueries({ queryKey: [org_id, '/orgs/{org_id}/budget/agents'] }),
  ]);
};

/** Saves limits; the message afterwards offers to restore those before. */
export function useSaveLimits(onSaved: () => void) {
  const { org_id } = useOrganization();
  const queries = useQueryClient();
  const restore = async (target: Target, before: Limits): Promise<void> => {
    try {
      await saveLimits(org_id, target, before, randomId());
      toast({ text: 'Restored the limits.' });
    } catch (error) {
      toast({ text: `Could not restore the limits: ${String(error)}`, tone: 'error' });
    }
    await readAgain(queries, org_id);
  };
  return useMutation({
    mutationFn: ({ target, limits, key }: { target: Target; limits: Limits; before: Limits; key: string }) =>
      saveLimits(org_id, target, limits, key),
    onSuccess: async (_, { target, before }) => {
      onSaved();
      toast({
        text: `Saved the limits of ${target.agent_id ?? 'the organization'}.`,
        action: { label: 'Undo', run: () => void restore(target, before) },
      });
      await readAgain(queries, org_id);
    },
  });
}
