// The reads of the home page. Each panel has its own, so that one which fails leaves the others.
import { useQuery } from '@tanstack/react-query';
import { apiQuery, get, send } from '../../client/api.ts';
import type { Organization } from '../../client/session.ts';
import { loadTime } from '../../lists/load_time.ts';
import { seriesQuery } from '../../lists/series.ts';

const DAY_MS = 86_400_000;
const HOURS = 30;
/** The fewest that the API accepts; sums do not depend on it. */
const BUCKETS_MIN = 2;
const FAILED_SHOWN = 8;
const INCIDENTS_SHOWN = 5;
const FRESH_MS = 30_000;

/** Returns the series and lists of the last 24 hours. */
export function useHome({ org_id, can }: Organization) {
  const now = loadTime('home', Date.now());
  const at = (ms: number): string => new Date(ms).toISOString();
  const since = at(now - DAY_MS);
  const staleTime = FRESH_MS;
  const today = useQuery({ ...seriesQuery(org_id, { since }, BUCKETS_MIN), staleTime });
  const before = useQuery({
    ...seriesQuery(org_id, { since: at(now - 2 * DAY_MS), until: since }, BUCKETS_MIN),
    staleTime,
  });
  const p95 = useQuery({
    queryKey: [org_id, '/v1/analytics/query', 'home_p95', since],
    queryFn: ({ signal }) => readP95(org_id, since, at(now), signal),
    enabled: can('traces:read'),
    staleTime,
  });
  const hours = useQuery({ ...seriesQuery(org_id, { since }, HOURS), staleTime });
  const fine = useQuery({ ...seriesQuery(org_id, { since }, 120), staleTime });
  const query = { outcome: 'error,timeout', since: at(now - 7 * DAY_MS), limit: String(FAILED_SHOWN) };
  const failed = useQuery({
    queryKey: [org_id, '/v1/traces', query],
    queryFn: ({ signal }) => get(org_id, '/v1/traces', { query: query as object }, { signal }),
    staleTime,
  });
  const incidents = useQuery({
    ...apiQuery(org_id, '/v1/incidents', { query: { status: 'open', limit: INCIDENTS_SHOWN } }),
    staleTime,
  });
  return { p95, today, before, hours, fine, failed, incidents };
}

/** Returns the 95th percentile of the duration of all traces of a time, and of the time of that length before. */
async function readP95(org_id: string, since: string, until: string, signal: AbortSignal) {
  const measures = [{ measure: 'duration_ms', agg: 'p95' as const }];
  const body = { view: 'traces' as const, measures, since, until, compare: 'previous_period' as const };
  const { data } = await send(org_id, 'post', '/v1/analytics/query', { body, signal });
  return { now: numberOf(data.totals[0]), before: numberOf(data.previous?.totals[0]) };
}

const numberOf = (cell: unknown): number | null => (typeof cell === 'number' ? cell : null);
