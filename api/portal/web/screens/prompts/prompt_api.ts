// The requests of the prompt screens.
import { queryOptions } from '@tanstack/react-query';
import { type Answer, apiQuery } from '../../client/api.ts';
import { namesThing } from '../../client/deleted_thing.ts';
import { FRESH, queryClient } from '../../client/query_client.ts';

export type PromptItem = Answer<'/v1/prompts'>['data'][number];
export type Prompt = Answer<'/v1/prompts/{name}'>['data'];
export type Usage = Answer<'/v1/prompts/{name}/usage'>['data'];

export const USAGE_DAYS = 7;
const CALLS_LIMIT = 20;

/** Describes the read of one version; an empty version is the newest. A version never changes. */
export const promptQuery = (org_id: string, name: string, version: string) =>
  queryOptions({
    ...apiQuery(org_id, '/v1/prompts/{name}', { path: { name }, query: version === '' ? {} : { version } }),
    staleTime: version === '' ? FRESH.registry : FRESH.complete_trace,
  });

export const usageQuery = (org_id: string, name: string) =>
  queryOptions({
    ...apiQuery(org_id, '/v1/prompts/{name}/usage', { path: { name }, query: { days: USAGE_DAYS } }),
    staleTime: FRESH.registry,
  });

/** Describes the read of the newest calls, which are the real inputs of the playground. */
export const callsQuery = (org_id: string, name: string) =>
  queryOptions({
    ...apiQuery(org_id, '/v1/prompts/{name}/calls', { path: { name }, query: { limit: CALLS_LIMIT } }),
    staleTime: FRESH.registry,
  });

/** Reads the prompts again after one of them changed. @param deleted prompt that exists no more */
export async function refreshPrompts(org_id: string, deleted: string | null = null): Promise<void> {
  await Promise.all([
    queryClient.invalidateQueries({ queryKey: [org_id, '/v1/prompts'] }),
    queryClient.invalidateQueries({
      queryKey: [org_id, '/v1/prompts/{name}'],
      predicate: ({ queryKey }) => !namesThing(queryKey, deleted),
    }),
  ]);
}

/** Returns the address of a prompt's page. */
export const promptPath = (org_id: string, name: string): string =>
  `/o/${encodeURIComponent(org_id)}/prompts/${encodeURIComponent(name)}`;
