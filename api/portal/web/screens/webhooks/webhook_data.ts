// The requests of the webhook screens: endpoints, their statistics, delivery attempts and dead letters.
import { infiniteQueryOptions, type QueryClient, queryOptions } from '@tanstack/react-query';
import { type Answer, apiQuery, get } from '../../client/api.ts';
import { namesThing } from '../../client/deleted_thing.ts';
import { FRESH } from '../../client/query_client.ts';

const LIST = '/orgs/{org_id}/webhooks';
const ONE = '/orgs/{org_id}/webhooks/{webhook_id}';
const STATS = '/orgs/{org_id}/webhooks/stats';
const DELIVERIES = '/orgs/{org_id}/webhooks/{webhook_id}/deliveries';
const LETTERS = '/orgs/{org_id}/webhooks/dead-letters';
const ENDPOINTS_PAGE = 200;
const ATTEMPTS_PAGE = 100;
const LETTERS_PAGE = 25;

export type Webhook = Answer<typeof ONE>['data'];
export type WebhookStats = Answer<typeof STATS>['data'][number];
export type Attempt = Answer<typeof DELIVERIES>['data'][number];
export type DeadLetter = Answer<typeof LETTERS>['data'][number];

interface Paged {
  meta: { has_more: boolean; page: number; per_page: number };
}
const nextOffset = ({ meta }: Paged): number | null => (meta.has_more ? meta.page * meta.per_page : null);

/** Describes the pages of the endpoints, the newest first. */
export const webhooksQuery = (org_id: string) =>
  infiniteQueryOptions({
    queryKey: [org_id, LIST, 'pages'],
    queryFn: ({ pageParam, signal }) =>
      get(org_id, LIST, { path: { org_id }, query: { limit: ENDPOINTS_PAGE, offset: pageParam } }, { signal }),
    initialPageParam: 0,
    getNextPageParam: nextOffset,
  });

export const webhookQuery = (org_id: string, webhook_id: string) =>
  queryOptions({ ...apiQuery(org_id, ONE, { path: { org_id, webhook_id } }), staleTime: FRESH.list });

/** Describes the statistics of all endpoints over 7 days. */
export const statsQuery = (org_id: string) => queryOptions(apiQuery(org_id, STATS, { path: { org_id }, query: {} }));

interface AttemptFilters {
  outcome: Attempt['outcome'] | null;
  event: string;
  event_id: string;
}

/** Describes the pages of the attempts of an endpoint, the newest first. */
export const attemptsQuery = (org_id: string, webhook_id: string, { outcome, event, event_id }: AttemptFilters) => {
  const filters = {
    ...(outcome === null ? {} : { outcome }),
    ...(event === '' ? {} : { event }),
    ...(event_id === '' ? {} : { event_id }),
  };
  return infiniteQueryOptions({
    queryKey: [org_id, DELIVERIES, webhook_id, filters],
    queryFn: ({ pageParam, signal }) =>
      get(
        org_id,
        DELIVERIES,
        { path: { org_id, webhook_id }, query: { ...filters, limit: ATTEMPTS_PAGE, offset: pageParam } },
        { signal },
      ),
    initialPageParam: 0,
    getNextPageParam: nextOffset,
  });
};

/** Describes the pages of the dead letters, the newest first. @param webhook_id empty for all endpoints */
export const lettersQuery = (org_id: string, webhook_id: string) =>
  infiniteQueryOptions({
    queryKey: [org_id, LETTERS, webhook_id],
    queryFn: ({ pageParam, signal }) =>
      get(
        org_id,
        LETTERS,
        {
          path: { org_id },
          query: { ...(webhook_id === '' ? {} : { webhook_id }), limit: LETTERS_PAGE, offset: pageParam },
        },
        { signal },
      ),
    initialPageParam: 0,
    getNextPageParam: nextOffset,
  });

/** Reads everything about webhooks again after a change. @param deleted endpoint that exists no more */
export async function rereadWebhooks(cache: QueryClient, org_id: string, deleted: string | null = null): Promise<void> {
  await cache.invalidateQueries({
    predicate: ({ queryKey }) => {
      const [org, path] = queryKey;
      return org === org_id && typeof path === 'string' && path.startsWith(LIST) && !namesThing(queryKey, deleted);
    },
  });
}

export const webhookPath = (org_id: string, webhook_id: string): string =>
  `/o/${encodeURIComponent(org_id)}/webhooks/${encodeURIComponent(webhook_id)}`;
