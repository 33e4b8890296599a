// The requests of the operator about organizations.
import { infiniteQueryOptions } from '@tanstack/react-query';
import { type Answer, get } from '../../client/api.ts';
import { queryClient } from '../../client/query_client.ts';

export type Org = Answer<'/admin/orgs'>['data'][number];
export const PLANS = ['free', 'starter', 'pro', 'enterprise'] as const;

const PAGE = 200;
const KEY = [null, '/admin/orgs'] as const;

export const orgsQuery = infiniteQueryOptions({
  queryKey: KEY,
  queryFn: ({ pageParam: offset, signal }) => get(null, '/admin/orgs', { query: { limit: PAGE, offset } }, { signal }),
  initialPageParam: 0,
  getNextPageParam: ({ meta }, pages) => (meta.has_more ? pages.length * PAGE : null),
});

/** Reads the organizations again. */
export const refreshOrgs = (): Promise<void> => queryClient.invalidateQueries({ queryKey: KEY });
