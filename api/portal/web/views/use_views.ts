// Saved views of a page: those of the person and of the organization, and the changes of them.
import { useMutation, useQuery } from '@tanstack/react-query';
import { apiQuery, send, type Answer } from '../client/api.ts';
import { FRESH, queryClient } from '../client/query_client.ts';
import type { ViewTab } from './view_tabs.ts';

type View = Answer<'/v1/views'>['data'][number];

const viewsQuery = (org_id: string, page: string) => apiQuery(org_id, '/v1/views', { query: { page, limit: 200 } });

/** Returns the saved views of a page as tabs, private ones first. */
export function useViews(org_id: string, page: string): readonly ViewTab[] {
  const views = useQuery({ ...viewsQuery(org_id, page), staleTime: FRESH.registry });
  const tabs = (views.data?.data ?? []).map(tabOf);
  return [...tabs.filter(({ scope }) => scope === 'private'), ...tabs.filter(({ scope }) => scope === 'org')];
}

const tabOf = ({ view_id, name, query, scope }: View): ViewTab => ({ view_id, name, query, scope });

interface Draft {
  name: string;
  query: string;
  scope: 'private' | 'org';
  idempotencyKey: string;
}

/** Returns the changes that can be made to the views of a page; each loads the views again. */
export function useViewChanges(org_id: string, page: string) {
  const onSuccess = () => queryClient.invalidateQueries({ queryKey: [org_id, '/v1/views'] });
  const create = useMutation({
    mutationFn: ({ idempotencyKey, ...body }: Draft) =>
      send(org_id, 'post', '/v1/views', { body: { ...body, page }, idempotencyKey }),
    onSuccess,
  });
  const change = useMutation({
    mutationFn: ({ view_id, ...body }: { view_id: string; name?: string; query?: string }) =>
      send(org_id, 'patch', '/v1/views/{view_id}', { params: { path: { view_id } }, body }),
    onSuccess,
  });
  const remove = useMutation({
    mutationFn: (view_id: string) => send(org_id, 'delete', '/v1/views/{view_id}', { params: { path: { view_id } } }),
    onSuccess,
  });
  return { create, change, remove };
}
