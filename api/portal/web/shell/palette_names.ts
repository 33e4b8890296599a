// The things that the palette finds by name: prompts, judges, datasets and agents.
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { apiQuery } from '../client/api.ts';
import { useOrganization } from '../client/session.ts';
import type { Entry } from './palette_match.ts';
import { ORG_PATHS } from './rail.tsx';

/** Things of one kind, the newest ones. */
const NAMED_MAX = 200;
/** Agents that no request has registered are known by the traces of this time. */
const SEEN_MS = 7 * 86_400_000;
const FRESH = { staleTime: 60_000 };

/** Returns true for the path of a page with one more part, for example /traces/ for /traces/:trace_id. */
export const hasPageOf = (path: string): boolean =>
  [...ORG_PATHS].some((route) => route.startsWith(`/o/:org_id${path}:`));

interface NamedLine extends Entry {
  href: string;
}

/**
 * Returns a line for each prompt, judge, dataset and agent.
 * @param home path of the organization
 */
export function useNamed(home: string): NamedLine[] {
  const { org_id, can } = useOrganization();
  const query = { limit: NAMED_MAX };
  const prompts = useQuery({ ...apiQuery(org_id, '/v1/prompts', { query }), ...FRESH, enabled: can('prompts:read') });
  const judges = useQuery({ ...apiQuery(org_id, '/v1/judges', { query }), ...FRESH, enabled: can('judges:read') });
  const datasets = useQuery({
    ...apiQuery(org_id, '/v1/datasets', { query }),
    ...FRESH,
    enabled: can('datasets:read'),
  });
  const agents = useAgents();
  const line = (group: string, path: string, id: string, label: string): NamedLine => ({
    id: `open ${path}${id}`,
    label,
    group,
    href: `${home}${path}${encodeURIComponent(id)}`,
  });
  // Versions of a dataset come newest first, and its name leads to the newest.
  const newest = new Map((datasets.data?.data ?? []).toReversed().map(({ name, dataset_id }) => [name, dataset_id]));
  return [
    ...(prompts.data?.data ?? []).map(({ name }) => line('Prompts', '/prompts/', name, name)),
    ...(judges.data?.data ?? []).map(({ judge_id, name }) => line('Judges', '/judges/', judge_id, name)),
    ...[...newest].map(([name, dataset_id]) => line('Datasets', '/datasets/', dataset_id, name)),
    ...[...agents].map(([agent_id, name]) => line('Agents', agentPath(), agent_id, name)),
  ];
}

/** Agents have pages of their own, or else the list of their traces. */
const agentPath = (): string => (hasPageOf('/agents/') ? '/agents/' : '/traces?agent_id=');

/** Returns the names of agents by their id; an agent that only sends traces has its id for a name. */
function useAgents(): ReadonlyMap<string, string> {
  const { org_id, can } = useOrganization();
  const [since] = useState(() => new Date(Date.now() - SEEN_MS).toISOString());
  const listed = useQuery({
    ...apiQuery(org_id, '/orgs/{org_id}/agents', { path: { org_id }, query: { limit: NAMED_MAX } }),
    ...FRESH,
    enabled: can('agents:read'),
  });
  const seen = useQuery({
    ...apiQuery(org_id, '/v1/traces/facets', { query: { fields: ['agent_id'], since } }),
    ...FRESH,
    enabled: can('traces:read'),
  });
  const values = seen.data?.data.find(({ field }) => field === 'agent_id')?.values ?? [];
  return new Map([
    ...values.map(({ value }): [string, string] => [value, value]),
    ...(listed.data?.data ?? []).map(({ agent_id, name }): [string, string] => [agent_id, name]),
  ]);
}
