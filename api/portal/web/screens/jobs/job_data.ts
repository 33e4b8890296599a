// Long jobs (restores and erasures) as their screens read them. The live stream reports their progress.
import { infiniteQueryOptions, queryOptions, useQueryClient } from '@tanstack/react-query';
import { type Answer, apiQuery, get } from '../../client/api.ts';
import { useLiveTopic } from '../../live/use_live_topic.ts';

const LIST = '/v1/jobs';
const PAGE = 100;
/** A running job is read again this often: the stream may be cut off. */
export const POLL_MS = 5000;

export type Job = Answer<'/v1/jobs'>['data'][number];
interface JobFilters {
  status: Job['status'] | null;
  kind: 'restore' | 'erase' | null;
}

export const isOpen = ({ status }: Pick<Job, 'status'>): boolean => status === 'queued' || status === 'running';

/** Describes the pages of the jobs, the newest first. */
export const jobsQuery = (org_id: string, { status, kind }: JobFilters) => {
  const filters = { ...(status === null ? {} : { status }), ...(kind === null ? {} : { kind }) };
  return infiniteQueryOptions({
    queryKey: [org_id, LIST, 'pages', filters],
    queryFn: ({ pageParam, signal }) =>
      get(org_id, LIST, { query: { ...filters, limit: PAGE, offset: pageParam } }, { signal }),
    initialPageParam: 0,
    getNextPageParam: ({ meta }) => (meta.has_more ? meta.page * meta.per_page : null),
  });
};

export const jobQuery = (org_id: string, id: string) =>
  queryOptions(apiQuery(org_id, '/v1/jobs/{id}', { path: { id } }));

/** Reads jobs again when the stream says that one has changed. */
export function useLiveJobs(org_id: string): void {
  const cache = useQueryClient();
  useLiveTopic(org_id, 'jobs', () => {
    void cache.invalidateQueries({
      predicate: ({ queryKey: [org, path] }) => org === org_id && typeof path === 'string' && path.startsWith(LIST),
    });
  });
}

export const jobPath = (org_id: string, job_id: string): string =>
  `/o/${encodeURIComponent(org_id)}/jobs/${encodeURIComponent(job_id)}`;

const KINDS: Readonly<Record<string, string>> = { restore: 'Restore from cold storage', erase: 'Erasure of a person' };

/** Returns the kind of a job in words. */
export const kindWords = (kind: string): string => KINDS[kind] ?? kind;
