// The reads of the lists of sessions and of end users, which differ in the name of the id alone.
import { infiniteQueryOptions } from '@tanstack/react-query';
import { get } from '../../client/api.ts';
import type { Query } from '../../lists/list_query.ts';
import type { Group } from './group_table.tsx';

export type GroupPath = 'sessions' | 'users';

const PAGE = '100';
/** Filters that both lists know. */
const SENT: readonly string[] = ['session_id', 'user_id', 'agent_id', 'since', 'until'];
/** Milliseconds for which an answer that was asked for ahead of the page is not asked for again. */
const FRESH_MS = 5000;

interface GroupPage {
  data: Group[];
  meta: { total: number; next_cursor: string | null };
}

const READS: Record<GroupPath, (org_id: string, query: Query, signal: AbortSignal) => Promise<GroupPage>> = {
  sessions: async (org_id, query, signal) => {
    const { data, meta } = await get(org_id, '/v1/sessions', { query }, { signal });
    return { data: data.map(({ session_id, ...sums }) => ({ id: session_id, ...sums })), meta };
  },
  users: async (org_id, query, signal) => {
    const { data, meta } = await get(org_id, '/v1/users', { query }, { signal });
    return { data: data.map(({ user_id, ...sums }) => ({ id: user_id, ...sums })), meta };
  },
};

/** Returns the parameters that a list sends. */
export const sentOf = (query: Query): Query =>
  Object.fromEntries(Object.entries(query).filter(([name]) => SENT.includes(name)));

/** Describes the read of the pages of a list. */
export function groupPagesQuery(org_id: string, path: GroupPath, query: Query) {
  const sent = sentOf(query);
  return infiniteQueryOptions({
    queryKey: [org_id, `/v1/${path}`, sent],
    queryFn: ({ pageParam, signal }) =>
      READS[path](org_id, { ...sent, limit: PAGE, ...(pageParam === null ? {} : { cursor: pageParam }) }, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.meta.next_cursor,
    staleTime: FRESH_MS,
  });
}
