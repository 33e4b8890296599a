// The hits for what is typed: asked for 180 ms after the last key, and the request before is cancelled.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { type Answer, get } from '../../client/api.ts';
import { type Query } from '../../lists/list_query.ts';
import { loadTime } from '../../lists/load_time.ts';
import { useSettled } from '../../lists/use_settled.ts';
import { searchQueryOf, type SearchState } from './search_url.ts';

const PAUSE_MS = 180;
const HITS_MAX = 100;
/** Texts become searchable within this time, more or less. */
const AGAIN_MS = 3000;

type AnyHit = Answer<'/v1/spans/search'>['data'][number];
export type SnippetHit = Extract<AnyHit, { snippet: string }>;
export type SearchMeta = Answer<'/v1/spans/search'>['meta'];

export interface SearchAnswer {
  hits: readonly SnippetHit[];
  meta: SearchMeta;
}

/** Returns the hits of the state; old ones stay until newer ones are there. */
export function useSearchHits(org_id: string, state: SearchState) {
  const settled = useSettled(state, PAUSE_MS);
  const key = JSON.stringify(settled);
  const query: Query = searchQueryOf(settled, loadTime(key, Date.now()));
  const answer = useQuery({
    queryKey: [org_id, '/v1/spans/search', query],
    queryFn: async ({ signal }): Promise<SearchAnswer> => {
      const params = { ...query, snippets: 'true', limit: String(HITS_MAX) };
      const { data, meta } = await get(
        org_id,
        '/v1/spans/search',
        { query: params as object as { q: string } },
        { signal },
      );
      return { hits: data.filter((hit): hit is SnippetHit => 'snippet' in hit), meta };
    },
    enabled: query['q'] !== undefined,
    placeholderData: keepPreviousData,
    staleTime: 30_000,
    // A search that finds nothing may be for a text that was sent just now.
    refetchInterval: ({ state: { data } }) =>
      data !== undefined && data.hits.length === 0 && (data.meta.waiting ?? 0) > 0 ? AGAIN_MS : false,
  });
  return { ...answer, query, typing: settled !== state };
}
