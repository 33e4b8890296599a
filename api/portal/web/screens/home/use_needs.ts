// The reads behind "What needs you", one for each kind. A read whose permission the person lacks, or
// whose page does not exist yet, is not sent.
import { useQuery } from '@tanstack/react-query';
import { apiQuery, send } from '../../client/api.ts';
import { type Organization, useSession } from '../../client/session.ts';
import { loadTime } from '../../lists/load_time.ts';
import { openIncidentsQuery } from '../incidents/incident_data.ts';
import { useHasPage } from '../../shell/pages_context.ts';
import {
  anomalyNeeds,
  deadLetterNeeds,
  evalNeeds,
  grantNeeds,
  incidentNeeds,
  judgeNeeds,
  monitorNeeds,
  type Need,
  type Places,
} from './needs.ts';

const DAY_MS = 86_400_000;
const FRESH_MS = 30_000;
const ANOMALIES_SHOWN = 5;
const MONITORS_SHOWN = 5;
const EVALS_READ = 20;
const JUDGES_READ = 100;

interface Read {
  /** Name of what is read, for its error. */
  what: string;
  error: Error | null;
  isLoading: boolean;
  needs: readonly Need[];
  refetch: () => Promise<unknown>;
}

/** Returns the lines of each kind, and the read of the open incidents, which a tile also shows. */
export function useNeeds({ org_id, can }: Organization) {
  const hasPage = useHasPage();
  const places: Places = { root: `/o/${encodeURIComponent(org_id)}`, hasPage };
  const now = loadTime('home', Date.now());
  const staleTime = FRESH_MS;
  const incidents = useQuery({ ...openIncidentsQuery(org_id), staleTime });
  const monitors = useQuery({
    ...apiQuery(org_id, '/v1/monitors', { query: { state: 'alerting', limit: MONITORS_SHOWN } }),
    staleTime,
  });
  const anomalies = useQuery({
    ...apiQuery(org_id, '/v1/cost/anomalies', { query: { limit: ANOMALIES_SHOWN } }),
    enabled: can('costs:read'),
    staleTime,
  });
  const letters = useQuery({
    ...apiQuery(org_id, '/orgs/{org_id}/webhooks/dead-letters', { path: { org_id }, query: { limit: 1 } }),
    enabled: can('webhooks:read') && hasPage('/webhooks/:id'),
    staleTime,
  });
  const judges = useJudgeReads(org_id, can('judges:read'), now);
  const evals = useEvalReads(org_id, can('judges:read') && can('org:read') && hasPage('/evals/:eval_id'));
  const session = useSession();
  const grants = session.data?.orgs.find((org) => org.org_id === org_id)?.grants ?? [];
  const reads: Read[] = [
    { ...partsOf(incidents), what: 'the incidents', needs: incidentNeeds(incidents.data?.data ?? [], places) },
    { ...partsOf(monitors), what: 'the monitors', needs: monitorNeeds(monitors.data?.data ?? [], places) },
    { ...partsOf(anomalies), what: 'the anomalies', needs: anomalyNeeds(anomalies.data?.data ?? [], places, now) },
    {
      ...partsOf(judges.list),
      error: judges.list.error ?? judges.means.error,
      what: 'the judges',
      needs: judgeNeeds(judges.list.data?.data ?? [], judges.means.data ?? new Map(), places),
    },
    {
      ...partsOf(evals.list),
      what: 'the evals',
      needs: evals.drop === null ? [] : evalNeeds(evals.list.data?.data ?? [], evals.drop, places, now),
    },
    { ...partsOf(letters), what: 'the dead letters', needs: deadLetterNeeds(letters.data?.meta.total ?? 0, places) },
  ];
  return {
    incidents,
    reads,
    loading: reads.some(({ isLoading }) => isLoading),
    needs: [...reads.flatMap(({ needs }) => needs), ...grantNeeds(grants, places, now)],
  };
}

const partsOf = ({ error, isLoading, refetch }: Pick<Read, 'error' | 'isLoading' | 'refetch'>) => ({
  error,
  isLoading,
  refetch,
});

/** Judges, and the mean score of each over the last 24 hours. */
function useJudgeReads(org_id: string, enabled: boolean, now: number) {
  const since = new Date(now - DAY_MS).toISOString();
  const list = useQuery({
    ...apiQuery(org_id, '/v1/judges', { query: { limit: JUDGES_READ } }),
    enabled,
    staleTime: FRESH_MS,
  });
  const means = useQuery({
    queryKey: [org_id, '/v1/analytics/query', 'judge_means', since],
    queryFn: ({ signal }) => readMeans(org_id, since, signal),
    // Without judges there are no scores to ask for.
    enabled: enabled && (list.data?.data.length ?? 0) > 0,
    staleTime: FRESH_MS,
  });
  return { list, means };
}

async function readMeans(org_id: string, since: string, signal: AbortSignal) {
  const body = {
    view: 'scores' as const,
    measures: [
      { measure: 'count', agg: 'sum' as const },
      { measure: 'score', agg: 'avg' as const },
    ],
    group_by: ['judge'],
    filters: [{ field: 'given_by', op: 'eq' as const, value: 'judge' }],
    since,
    top: JUDGES_READ,
  };
  const { data } = await send(org_id, 'post', '/v1/analytics/query', { body, signal });
  const means = new Map<string, { mean: number; scores: number }>();
  for (const [judge, scores, mean] of data.rows)
    if (typeof judge === 'string' && typeof scores === 'number' && typeof mean === 'number')
      means.set(judge, { mean, scores });
  return means;
}

/** The newest complete evals, and the drop of a mean that the policy of the organization calls a regression. */
function useEvalReads(org_id: string, enabled: boolean) {
  const list = useQuery({
    ...apiQuery(org_id, '/v1/evals', { query: { status: 'complete', limit: EVALS_READ } }),
    enabled,
    staleTime: FRESH_MS,
  });
  const policy = useQuery({
    ...apiQuery(org_id, '/orgs/{org_id}/policy', { path: { org_id } }),
    enabled: enabled && (list.data?.data.length ?? 0) > 1,
    staleTime: FRESH_MS,
  });
  return { list, drop: policy.data?.data.regression_drop ?? null };
}
