// The anomalies of an organization.
import { useQuery } from '@tanstack/react-query';
import { apiQuery } from '../../client/api.ts';

/** The newest anomalies that are read; there is at most one a day. */
const SHOWN_MAX = 200;

/** Returns the newest anomalies. */
export function useAnomalies(org_id: string) {
  return useQuery(apiQuery(org_id, '/v1/cost/anomalies', { query: { limit: SHOWN_MAX } }));
}
