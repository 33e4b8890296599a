// The operator's routes of the analysts of an organization: create, list, delete.
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
    summary: 'Create an analyst',
    description:
      'Creates a user of the ClickHouse HTTP protocol at the address of this API. The user can read the documented views only, and in them the rows of this organization only. A query takes at most 60 seconds. `password` is shown in this response only. Returns 409 `conflict` if the name is taken, if the organization has 20 analysts, or if the store cannot confine such a user; the detail gives the reason.',
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
    summary: 'List analysts',
    description: 'Returns the analysts of the organization, oldest first, without their passwords.',
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
    summary: 'Delete an analyst',
    description: 'Cancels the running queries of the analyst. Every process rejects the analyst within a second.',
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
