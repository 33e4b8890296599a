// The reads of the home page. Each panel has its own, so that one which fails leaves the others.
import { queryOptions, useQuery } from '@tanstack/react-query';
import { get, send } from '../../client/api.ts';
import { queryClient, readAhead } from '../../client/query_client.ts';
import { loadTime } from '../../lists/load_time.ts';
import { fetchPreviews } from '../../lists/previews.ts';
import { seriesQuery } from '../../lists/series.ts';
import { numbersOf } from './day_numbers.ts';

const DAY_MS = 86_400_000;
/** Buckets of the last 24 hours: bars of the histogram, and points of the tiles. */
const BUCKETS = 120;
/** The fewest that the API accepts; sums do not depend on it. */
const BUCKETS_MIN = 2;
const FAILED_SHOWN = 8;
const FRESH_MS = 30_000;

/** Describes the reads of the last 24 hours. */
function homeQueries(org_id: string) {
  const now = loadTime('home', Date.now());
  const at = (ms: number): string => new Date(ms).toISOString();
  const since = at(now - DAY_MS);
  const staleTime = FRESH_MS;
  const query = { outcome: 'error,timeout', since: at(now - 7 * DAY_MS), limit: String(FAILED_SHOWN) };
  return {
    // The first traces show as soon as somebody comes back from sending them.
    today: queryOptions({
      ...seriesQuery(org_id, { since }, BUCKETS),
      staleTime: ({ state }) => (numbersOf(state.data?.data.series[0]).traces === 0 ? 0 : FRESH_MS),
    }),
    before: { ...seriesQuery(org_id, { since: at(now - 2 * DAY_MS), until: since }, BUCKETS_MIN), staleTime },
    p95: queryOptions({
      queryKey: [org_id, '/v1/analytics/query', 'home_p95', since],
      queryFn: ({ signal }) => readP95(org_id, since, at(now), signal),
      staleTime,
    }),
    failed: queryOptions({
      queryKey: [org_id, '/v1/traces', query],
      queryFn: ({ signal }) => get(org_id, '/v1/traces', { query: query as object }, { signal }),
      staleTime: ({ state }) => (state.data?.data.length === 0 ? 0 : FRESH_MS),
    }),
  };
}

/** Asks for the series and lists of the last 24 hours. */
export function preloadHome(org_id: string): void {
  const { today, before, p95, failed } = homeQueries(org_id);
  for (const series of [today, before]) readAhead(queryClient.query(series));
  readAhead(queryClient.query(p95));
  readAhead(queryClient.query(failed));
}

/** Returns the series and lists of the last 24 hours. */
export function useHome(org_id: string) {
  const queries = homeQueries(org_id);
  const today = useQuery(queries.today);
  const before = useQuery(queries.before);
  const p95 = useQuery(queries.p95);
  const failed = useQuery(queries.failed);
  const failed_ids = (failed.data?.data ?? []).map(({ trace_id }) => trace_id);
  const causes = useQuery({
    queryKey: [org_id, '/v1/traces/previews', failed_ids],
    queryFn: ({ signal }) => fetchPreviews(org_id, failed_ids, signal),
    enabled: failed_ids.length > 0,
    staleTime: FRESH_MS,
  });
  return { p95, today, before, failed, causes };
}

/** Returns the 95th percentile of the duration of all traces of a time, and of the time of that length before. */
async function readP95(org_id: string, since: string, until: string, signal: AbortSignal) {
  const measures = [{ measure: 'duration_ms', agg: 'p95' as const }];
  const body = { view: 'traces' as const, measures, since, until, compare: 'previous_period' as const };
  const { data } = await send(org_id, 'post', '/v1/analytics/query', { body, signal });
  return { now: numberOf(data.totals[0]), before: numberOf(data.previous?.totals[0]) };
}

const numberOf = (cell: unknown): number | null => (typeof cell === 'number' ? cell : null);
