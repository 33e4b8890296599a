// The route of refused ingest requests.
import type { Refusals } from '../../../ops/exchange/refusals.ts';
import { refusalList } from '../../../schemas/signals/refusals.ts';
import { defineRoute, type Route } from '../../http/route.ts';

export function refusalRoutes(deps: { refusals: Pick<Refusals, 'list'> }): Route[] {
  return [listIngestRefusalsRoute(deps)];
}

function listIngestRefusalsRoute({ refusals }: { refusals: Pick<Refusals, 'list'> }): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/ingest/refusals',
    operation_id: 'listIngestRefusals',
    summary: 'List refused ingest requests',
    description:
      'Returns the newest 50 ingest requests of the organization that were refused, newest first, with the error that the client got. API processes keep them in memory only. Requests with an unknown key are listed in development only, for the organization that their path or X-Org-Id names.',
    tag: 'Ingest',
    permission: 'traces:read',
    response: refusalList,
    handler: async ({ org_id }) => ({ data: await refusals.list(org_id) }),
  });
}
