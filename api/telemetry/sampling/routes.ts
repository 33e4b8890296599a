// Route of sampling: what it is set to, and what it has kept.
import { defineRoute, type Route } from '../../http/route.ts';
import { type SamplingDeps, showSampling } from './sampling.ts';
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
    summary: 'What sampling is set to, and what it has kept',
    description:
      'Errors, slow events, forced traces and the named kinds are always kept. Of the rest a part by the profile is; what is not leaves a summary row, so tokens, costs and budgets are the same with every profile.',
    tag: TAG,
    permission: 'traces:read',
    query: samplingQuery,
    response: sampling,
    handler: async ({ org_id, query, signal }) => ({ data: await showSampling(deps, org_id, query, signal) }),
  });
}
