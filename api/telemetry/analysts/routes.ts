// Routes of the analysts of an org, for the operator.
import { z } from 'zod';
import { offsetQuery, pageMeta, pageMetaOf } from '../../http/pagination.ts';
import { defineOperatorRoute, type Route } from '../../http/route.ts';
import { type AnalystAdminDeps, baseUrlOf, createAnalyst, listAnalysts, removeAnalyst } from './analysts.ts';
import { analystItem, analystParams, createAnalystBody, createdAnalyst, deletedAnalyst, orgParams } from './schema.ts';

const page = z.object(offsetQuery);

export function analystRoutes(deps: AnalystAdminDeps): Route[] {
  return [
    defineOperatorRoute({
      method: 'post',
      path: '/admin/orgs/:org_id/analysts',
      operation_id: 'createAnalyst',
      summary: 'Make an analyst of an org',
      description:
        "A user of ClickHouse's HTTP protocol, at this API's own address, who can only read the documented views, and of them the rows of this " +
        'org. A query takes 60 seconds at most. password is shown in this answer and never again. 409 says why where the store cannot confine ' +
        'such a user, or where the name is taken.',
      tag: 'Operator',
      status: 201,
      secret: true,
      params: orgParams,
      body: createAnalystBody,
      example: { name: 'reporting' },
      response: createdAnalyst,
      errors: ['org_not_found', 'conflict'],
      audit: { action: 'analyst.create', target: 'analyst' },
      handler: async (ctx) => {
        const analyst = await createAnalyst(deps, ctx.params.org_id, ctx.body, baseUrlOf(ctx.req));
        ctx.audit.target(analyst.user);
        ctx.audit.changes({ name: ctx.body.name });
        return { data: analyst };
      },
    }),
    defineOperatorRoute({
      method: 'get',
      path: '/admin/orgs/:org_id/analysts',
      operation_id: 'listAnalysts',
      summary: 'Analysts of an org, oldest first; never their passwords',
      tag: 'Operator',
      params: orgParams,
      query: page,
      response: z.array(analystItem),
      meta: pageMeta,
      errors: ['org_not_found'],
      handler: (ctx) => {
        const { limit, offset } = ctx.query;
        const analysts = listAnalysts(deps, ctx.params.org_id);
        return { data: analysts.slice(offset, offset + limit), meta: pageMetaOf(analysts.length, limit, offset) };
      },
    }),
    defineOperatorRoute({
      method: 'delete',
      path: '/admin/orgs/:org_id/analysts/:user',
      operation_id: 'deleteAnalyst',
      summary: 'Take an analyst of an org away',
      description: 'Its queries are cut, and it is refused everywhere within a second.',
      tag: 'Operator',
      params: analystParams,
      response: deletedAnalyst,
      errors: ['org_not_found'],
      audit: { action: 'analyst.delete', target: 'analyst', param: 'user' },
      handler: async (ctx) => {
        await removeAnalyst(deps, ctx.params.org_id, ctx.params.user);
        return { data: { user: ctx.params.user, deleted: true as const } };
      },
    }),
  ];
}
