// What the runs of the playground cost: the traces are asked for together until all of them are stored,
// or for as long as a trace takes at most.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { get } from '../../../client/api.ts';

const ASK_MS = 1500;
const ASKS_MAX = 40;

/** Returns the function that gives the cost of a trace; undefined until it is stored. */
export function useCosts(org_id: string, trace_ids: readonly string[]): (trace_id: string) => number | undefined {
  const ids = trace_ids.toSorted();
  const { data } = useQuery({
    queryKey: [org_id, 'playground', ids],
    queryFn: async ({ signal }) => {
      const { data: traces } = await get(
        org_id,
        '/v1/traces',
        { query: { trace_ids: ids, limit: Math.max(1, ids.length) } },
        { signal },
      );
      return new Map(traces.map(({ trace_id, cost_usd }) => [trace_id, cost_usd]));
    },
    enabled: ids.length > 0,
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) =>
      state.dataUpdateCount >= ASKS_MAX || (state.data?.size ?? 0) >= ids.length ? false : ASK_MS,
  });
  return (trace_id) => data?.get(trace_id);
}
