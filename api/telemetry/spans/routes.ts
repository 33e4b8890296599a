// The route of the span search.
import { z } from 'zod';
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
    description:
      'Searches prompts and responses, best match first. Ranks by BM25 over prompt and response as one document. A span can be found within seconds of its ingest.\n\nWith `snippets=true` a hit has the part of its text around the first match in place of the whole texts.',
    tag: TAG,
    permission: 'traces:read',
    query: searchQuery,
    response: z.array(z.union([searchHit, snippetHit])),
    meta: searchMeta,
    handler: ({ org_id, query, signal }) =>
      query.snippets ? searchSnippets(deps, org_id, query, signal) : searchSpans(deps, org_id, query, signal),
  });
}
