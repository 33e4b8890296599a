// Counts of the values of the filters, for the rail beside a list and for the suggestions of its field.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { type Answer, get } from '../client/api.ts';
import { FRESH } from '../client/query_client.ts';
import type { Query } from './list_query.ts';
import type { SuggestedValue } from './suggestions.ts';

export type Facet = Answer<'/v1/traces/facets'>['data'][number];

/**
 * Returns the counts, each without its own filter.
 * @param enabled false until the rows are there, which come first
 */
export function useFacets(org_id: string, query: Query, enabled: boolean) {
  return useQuery({
    queryKey: [org_id, '/v1/traces/facets', query],
    queryFn: ({ signal }) => get(org_id, '/v1/traces/facets', { query }, { signal }),
    enabled,
    staleTime: FRESH.facets,
    placeholderData: keepPreviousData,
  });
}

/** Returns the values of all facets as suggestions, the commonest first. */
export function suggestedValues(facets: readonly Facet[]): SuggestedValue[] {
  return facets
    .filter(({ field }) => field !== 'score' && field !== 'verdict' && field !== 'sampled')
    .flatMap(({ field, values = [] }) => values.map(({ value, traces }) => ({ name: field, value, traces })))
    .toSorted((a, b) => b.traces - a.traces);
}
