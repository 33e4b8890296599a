// The route of the span search.
import { z } from 'zod';
import type { ClickHouse } from '../../../sql/client/client.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { searchHit, searchMeta, searchQuery } from './schema.ts';
import { searchSpans } from './search.ts';

const TAG = 'Traces';

export function spanRoutes(deps: { clickhouse: ClickHouse }): Route[] {
  return [searchSpansRoute(deps)];
}

function searchSpansRoute({ clickhouse }: { clickhouse: ClickHouse }): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/spans/search',
    operation_id: 'searchSpans',
    summary: 'Search spans',
    description:
      'Searches prompts and responses, best match first. Ranks by BM25 over prompt and response as one document. A span can be found within seconds of its ingest.',
    tag: TAG,
    permission: 'traces:read',
    query: searchQuery,
    response: z.array(searchHit),
    meta: searchMeta,
    handler: ({ org_id, query, signal }) => searchSpans(clickhouse, org_id, query, signal),
  });
}
