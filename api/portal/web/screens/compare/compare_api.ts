// The requests of the comparison: the fields of both traces, their outlines, and the threshold of the
// policy.
import { queryOptions } from '@tanstack/react-query';
import { apiQuery, send } from '../../client/api.ts';
import { FRESH } from '../../client/query_client.ts';

const PATH = '/v1/traces/compare';
/** Threshold of a new organization, for a person who may not read the policy. */
const DEFAULT_THRESHOLD_PERCENT = 10;

export type ComparedField = Awaited<ReturnType<typeof send<'post', typeof PATH>>>['data']['fields'][number];

/** Describes the comparison of the fields of two traces. */
export const compareQuery = (org_id: string, baseline_trace_id: string, candidate_trace_id: string) =>
  queryOptions({
    queryKey: [org_id, PATH, baseline_trace_id, candidate_trace_id],
    queryFn: ({ signal }) => send(org_id, 'post', PATH, { body: { baseline_trace_id, candidate_trace_id }, signal }),
    staleTime: FRESH.registry,
  });

/** Describes the read of the change in percent beyond which numbers differ. */
export const thresholdQuery = (org_id: string) =>
  queryOptions({
    ...apiQuery(org_id, '/orgs/{org_id}/policy', { path: { org_id } }),
    staleTime: FRESH.registry,
    select: ({ data }) => data.compare_threshold_percent,
  });

export const thresholdOf = (read: number | undefined): number => read ?? DEFAULT_THRESHOLD_PERCENT;
