// The traces over time of many sessions or users: one request for all rows that appeared together, and
// more only where their ids would make an address too long.
import { get } from '../../client/api.ts';
import type { Query } from '../../lists/list_query.ts';
import { escapedValue } from '../../lists/list_url.ts';
import { activityRequests } from './activity_requests.ts';

const BUCKETS_MAX = 24;

export type Activity = readonly number[];

/**
 * Returns the traces by bucket of each session or user.
 * @param time since and until of the list
 */
export async function readActivity(
  org_id: string,
  group_by: 'session_id' | 'user_id',
  time: Query,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Activity>> {
  const answers = await Promise.all(
    activityRequests(ids).map((part) => {
      const query = { ...time, group_by, groups: part.map(escapedValue).join(','), buckets: BUCKETS_MAX };
      return get(org_id, '/v1/traces/series', { query: query as object }, { signal });
    }),
  );
  return new Map(
    answers.flatMap(({ data }) =>
      data.series.flatMap(({ group, traces }): [string, Activity][] => (group === null ? [] : [[group, traces]])),
    ),
  );
}
