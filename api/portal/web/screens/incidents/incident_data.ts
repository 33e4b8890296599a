// Incidents as their screens read them: pages of the list, one incident, and the words for both. The
// live stream says when an incident was opened, changed or resolved.
import { infiniteQueryOptions, type QueryClient, queryOptions, useQueryClient } from '@tanstack/react-query';
import { useEffect, useMemo } from 'react';
import { type Answer, apiQuery, get } from '../../client/api.ts';
import { useLiveTopic } from '../../live/use_live_topic.ts';
import { IncidentRereads } from './incident_rereads.ts';
import type { Changed } from './open_incidents.ts';

export type Incident = Answer<'/v1/incidents'>['data'][number];
export type IncidentDetail = Answer<'/v1/incidents/{incident_id}'>['data'];
export type IncidentFilters = Partial<
  Pick<Incident, 'status' | 'severity' | 'cluster_id'> & { agent_id: string; since: string }
>;

const LIST = '/v1/incidents';
const ONE = '/v1/incidents/{incident_id}';
const PAGE = 100;

/** Describes the pages of the list, the newest incident first. */
export const incidentsQuery = (org_id: string, filters: IncidentFilters) =>
  infiniteQueryOptions({
    queryKey: [org_id, LIST, 'pages', filters],
    queryFn: ({ pageParam, signal }) =>
      get(
        org_id,
        LIST,
        { query: { ...filters, limit: PAGE, ...(pageParam === null ? {} : { cursor: pageParam }) } },
        { signal },
      ),
    initialPageParam: null as string | null,
    getNextPageParam: ({ meta }) => meta.next_cursor,
  });

export const incidentQuery = (org_id: string, incident_id: string) =>
  queryOptions(apiQuery(org_id, ONE, { path: { incident_id } }));

const OPEN_SHOWN = 5;

/** Describes the newest open incidents and their number: Home shows the ones, the rail the other. */
export const openIncidentsQuery = (org_id: string) =>
  queryOptions(apiQuery(org_id, LIST, { query: { status: 'open', limit: OPEN_SHOWN } }));

/**
 * Reads incidents again when the stream says that one has changed. The rail does so once for every page of an
 * organization.
 */
export function useLiveIncidents(org_id: string): void {
  const cache = useQueryClient();
  const rereads = useMemo(() => rereadsOf(cache, org_id), [cache, org_id]);
  useEffect(
    () => () => {
      rereads.stop();
    },
    [rereads],
  );
  useLiveTopic(org_id, 'incidents', (state) => void rereads.follow(state as Changed | null));
}

function rereadsOf(cache: QueryClient, org_id: string): IncidentRereads {
  const { queryKey } = openIncidentsQuery(org_id);
  return new IncidentRereads({
    readAll: () =>
      cache.invalidateQueries({
        predicate: ({ queryKey: [org, path] }) => org === org_id && typeof path === 'string' && path.startsWith(LIST),
      }),
    open: () => cache.getQueryData(queryKey),
  });
}

export const incidentPath = (org_id: string, incident_id: string): string =>
  `/o/${encodeURIComponent(org_id)}/incidents/${encodeURIComponent(incident_id)}`;

/** Returns who or what resolved an incident, in words. */
export function resolvedWords({ resolved_by }: Pick<Incident, 'resolved_by'>): string {
  if (resolved_by === null) return '';
  return resolved_by === 'auto' ? 'by itself, after 30 minutes without a trace' : `by ${resolved_by}`;
}
