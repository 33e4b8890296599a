// The route of the span search.
import { z } from 'zod';
import { SEARCH_WAIT_MS_MAX, SEARCHES_ORG_AT_ONCE, SEARCHES_ORG_MAX } from './postings/document_search.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { searchHit, searchMeta, searchQuery, snippetHit } from './schema.ts';
import { type SearchDeps, searchSpans } from './search.ts';
import { searchSnippets } from './snippets.ts';

const TAG = 'Traces';

export function spanRoutes(deps: SearchDeps): Route[] {
  return [searchSpansRoute(deps)];
}

function searchSpansRoute(deps: SearchDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/spans/search',
    operation_id: 'searchSpans',
    summary: 'Search spans',
    description: `Searches prompts and responses, best match first. Ranks by BM25 over prompt and response as one document. A span can be found within seconds of its ingest.\n\nWith \`snippets=true\` a hit has the part of its text around the first match in place of the whole texts.\n\nA process runs ${SEARCHES_ORG_AT_ONCE} searches of an organization at a time; others wait up to ${SEARCH_WAIT_MS_MAX / 1000} seconds and then get 429 \`rate_limited\` with \`Retry-After\`, as does at once a search beyond ${SEARCHES_ORG_MAX} of an organization.`,
    tag: TAG,
    permission: 'traces:read',
    query: searchQuery,
    response: z.array(z.union([searchHit, snippetHit])),
    meta: searchMeta,
    errors: ['rate_limited'],
    handler: ({ org_id, query, signal }) =>
      query.snippets ? searchSnippets(deps, org_id, query, signal) : searchSpans(deps, org_id, query, signal),
  });
}
