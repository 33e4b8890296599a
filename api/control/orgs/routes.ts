// Route of the record of an organization.
import { orgParams } from '../../http/common_params.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { type OrgsDeps, viewOrg } from './orgs.ts';
import { orgView } from './schema.ts';

const TAG = 'Organization';

export function orgRoutes(deps: OrgsDeps): Route[] {
  return [getOrgRoute(deps)];
}

function getOrgRoute(deps: OrgsDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/orgs/:org_id',
    operation_id: 'getOrg',
    summary: 'Get the organization',
    description:
      '`plan_name`, `overage_budget_usd`, `rate_limits` and `effective_rate_limits` are included only for callers with the permission `billing:view`.',
    tag: TAG,
    permission: 'org:read',
    params: orgParams,
    response: orgView,
    handler: ({ credential }) => ({ data: viewOrg(deps, credential) }),
  });
}
