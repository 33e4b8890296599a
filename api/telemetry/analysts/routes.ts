// Routes of the analysts of an org, for the operator.
import { z } from 'zod';
import { pageMeta } from '../../http/pagination.ts';
import { orgParams } from '../../http/common_params.ts';
import { pageOf, pageQuery } from '../../http/list_pages.ts';
import { defineOperatorRoute, type Route } from '../../http/route.ts';
import { type AnalystAdminDeps, baseUrlOf, createAnalyst, listAnalysts, removeAnalyst } from './analysts.ts';
import { analystItem, analystParams, createAnalystBody, createdAnalyst, deletedAnalyst } from './schema.ts';

const TAG = 'Operator';

export function analystRoutes(deps: AnalystAdminDeps): Route[] {
  return [createAnalystRoute(deps), listAnalystsRoute(deps), deleteAnalystRoute(deps)];
}

function createAnalystRoute(deps: AnalystAdminDeps): Route {
  return defineOperatorRoute({
    method: 'post',
    path: '/admin/orgs/:org_id/analysts',
    operation_id: 'createAnalyst',
    summary: 'Make an analyst of an org',
    description:
      "A user of ClickHouse's HTTP protocol, at this API's own address, who can only read the documented views, and of them the rows of this " +
      'org. A query takes 60 seconds at most. password is shown in this answer and never again. 409 says why where the store cannot confine ' +
      'such a user, or where the name is taken.',
    tag: TAG,
    audit: { action: 'analyst.create', target: 'analyst' },
    params: orgParams,
    body: createAnalystBody,
    example: { name: 'reporting' },
    status: 201,
    response: createdAnalyst,
    secret: true,
    errors: ['org_not_found', 'conflict'],
    handler: async ({ params, body, req, audit }) => {
      const analyst = await createAnalyst(deps, params.org_id, body, baseUrlOf(req));
      audit.target(analyst.user);
      audit.changes({ name: body.name });
      return { data: analyst };
    },
  });
}

function listAnalystsRoute(deps: AnalystAdminDeps): Route {
  return defineOperatorRoute({
    method: 'get',
    path: '/admin/orgs/:org_id/analysts',
    operation_id: 'listAnalysts',
    summary: 'Analysts of an org, oldest first; never their passwords',
    tag: TAG,
    params: orgParams,
    query: pageQuery,
    response: z.array(analystItem),
    meta: pageMeta,
    errors: ['org_not_found'],
    handler: ({ params, query }) => pageOf(listAnalysts(deps, params.org_id), query),
  });
}

function deleteAnalystRoute(deps: AnalystAdminDeps): Route {
  return defineOperatorRoute({
    method: 'delete',
    path: '/admin/orgs/:org_id/analysts/:user',
    operation_id: 'deleteAnalyst',
    summary: 'Take an analyst of an org away',
    description: 'Its queries are cut, and it is refused everywhere within a second.',
    tag: TAG,
    audit: { action: 'analyst.delete', target: 'analyst', param: 'user' },
    params: analystParams,
    response: deletedAnalyst,
    errors: ['org_not_found'],
    handler: async ({ params }) => {
      await removeAnalyst(deps, params.org_id, params.user);
      return { data: { user: params.user, deleted: true as const } };
    },
  });
}
