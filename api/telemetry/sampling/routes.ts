// The route of sampling: its settings and the events that it kept.
import { defineRoute, type Route } from '../../http/route.ts';
import { type SamplingDeps, getSampling } from './sampling.ts';
import { sampling, samplingQuery } from './schema.ts';

const TAG = 'Traces';

export function samplingRoutes(deps: SamplingDeps): Route[] {
  return [getSamplingRoute(deps)];
}

function getSamplingRoute(deps: SamplingDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/sampling',
    operation_id: 'getSampling',
    summary: 'Get sampling settings and counts',
    description:
      'Returns the sampling profile and how many events it kept. Errors, slow events, forced traces and the named kinds are always kept; of the other events, the profile keeps a fraction. An event that is not kept leaves a summary row, so tokens, costs and budgets are the same under every profile.',
    tag: TAG,
    permission: 'traces:read',
    query: samplingQuery,
    response: sampling,
    handler: async ({ org_id, query, signal }) => ({ data: await getSampling(deps, org_id, query, signal) }),
  });
}
