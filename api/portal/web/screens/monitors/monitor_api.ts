// The requests of the screens of monitors.
import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { apiQuery, send } from '../../client/api.ts';
import { namesThing } from '../../client/deleted_thing.ts';
import { RequestError } from '../../client/error.ts';
import { FRESH } from '../../client/query_client.ts';
import { useOrganization } from '../../client/session.ts';
import { toast } from '../../ui/toast.tsx';
import type { AnalyticsView, MonitorBody, PreviewBody } from './draft.ts';

/** Monitors are evaluated every minute; their states are read again this often while the tab is shown. */
export const REREAD_MS = 30_000;
const NO_VIEWS: readonly AnalyticsView[] = [];

/** Returns the views of analytics; empty until they are there. */
export function useViews(): readonly AnalyticsView[] {
  const { org_id } = useOrganization();
  const schema = useQuery({ ...apiQuery(org_id, '/v1/analytics/schema', {}), staleTime: FRESH.registry });
  return schema.data?.data.views ?? NO_VIEWS;
}

type Preview = Awaited<ReturnType<typeof askPreview>>['data'];
export type MonitorPreview = Preview;

const askPreview = (org_id: string, body: PreviewBody, signal: AbortSignal) =>
  send(org_id, 'post', '/v1/monitors/preview', { body, signal });

/** Returns what a definition measured and when it would have alerted; null asks nothing. */
export function usePreview(body: PreviewBody | null) {
  const { org_id } = useOrganization();
  return useQuery({
    queryKey: [org_id, '/v1/monitors/preview', body],
    queryFn: ({ signal }) => askPreview(org_id, body as PreviewBody, signal),
    enabled: body !== null,
    placeholderData: keepPreviousData,
    staleTime: FRESH.registry,
  });
}

/** Returns the change of fields of a monitor; `done` is said afterwards. */
export function useChange(monitor_id: string) {
  const { org_id } = useOrganization();
  const reread = useReread();
  return useMutation({
    mutationFn: async ({ patch }: { patch: Partial<MonitorBody>; done: string }) => {
      await send(org_id, 'patch', '/v1/monitors/{monitor_id}', { params: { path: { monitor_id } }, body: patch });
      await reread();
    },
    onSuccess: (_, { done }) => {
      toast({ text: done });
    },
    onError: (error) => {
      toast({ tone: 'error', text: error instanceof RequestError ? error.detail : 'The monitor was not changed.' });
    },
  });
}

/** Returns the function that reads all monitors again, but for one that exists no more. */
export function useReread(): (deleted?: string) => Promise<void> {
  const cache = useQueryClient();
  return (deleted) =>
    cache.invalidateQueries({
      predicate: ({ queryKey }) => isMonitorRead(String(queryKey[1])) && !namesThing(queryKey, deleted ?? null),
    });
}

const isMonitorRead = (path: string): boolean => path.startsWith('/v1/monitors') && path !== '/v1/monitors/preview';
