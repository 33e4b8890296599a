// Routes of the operator: making and changing orgs, and the first key of one.
import { z } from 'zod';
import { offsetQuery, pageMeta, pageMetaOf } from '../../http/pagination.ts';
import { defineOperatorRoute, type Route } from '../../http/route.ts';
import { fromTo } from './changes.ts';
import { changeOrg, createKey, createOrg, orgItemOf, type OrgsDeps } from './orgs.ts';
import {
  createdKey,
  createKeyBody,
  createOrgBody,
  KEY_EXAMPLE,
  orgAnswer,
  orgItem,
  orgParams,
  patchOrgBody,
} from './schema.ts';

const page = z.object(offsetQuery);

/** What the operator does to orgs. */
export function operatorRoutes(deps: OrgsDeps): Route[] {
  return [
    defineOperatorRoute({
      method: 'post',
      path: '/admin/orgs',
      operation_id: 'createOrg',
      summary: 'Make an org',
      tag: 'Operator',
      status: 201,
      body: createOrgBody,
      example: {
        org_id: 'org_acme',
        name: 'Acme',
        plan_name: 'pro',
        owner: { user_id: 'user_1', email: 'owner@example.com' },
      },
      response: orgAnswer,
      errors: ['conflict'],
      audit: { action: 'org.create', target: 'org' },
      handler: async (ctx) => {
        const org = await createOrg(deps, ctx.body);
        ctx.audit.org(org.org_id);
        ctx.audit.target(org.org_id);
        ctx.audit.changes({ name: org.name, plan_name: org.plan_name, owner: org.owner });
        return { data: { ...org, org } };
      },
    }),
    defineOperatorRoute({
      method: 'get',
      path: '/admin/orgs',
      operation_id: 'listOrgs',
      summary: 'Every org, by id',
      tag: 'Operator',
      query: page,
      response: z.array(orgItem),
      meta: pageMeta,
      handler: (ctx) => {
        const { limit, offset } = ctx.query;
        const orgs = deps.orgs.list();
        return {
          data: orgs.slice(offset, offset + limit).map(orgItemOf),
          meta: pageMetaOf(orgs.length, limit, offset),
        };
      },
    }),
    defineOperatorRoute({
      method: 'patch',
      path: '/admin/orgs/:org_id',
      operation_id: 'changeOrg',
      summary: 'Change fields of an org',
      description:
        'Another owner takes the place of the one there is, who becomes an admin. An org that leaves the plan enterprise loses its own rate_limits.',
      tag: 'Operator',
      params: orgParams,
      body: patchOrgBody,
      example: { plan_name: 'enterprise' },
      response: orgAnswer,
      errors: ['org_not_found'],
      audit: { action: 'org.update', target: 'org', param: 'org_id' },
      handler: async (ctx) => {
        const { before, after: org } = await changeOrg(deps, ctx.params.org_id, ctx.body);
        ctx.audit.changes(fromTo(before, org, ['name', 'plan_name', 'owner', 'overage_budget_usd', 'rate_limits']));
        return { data: { ...org, org } };
      },
    }),
    defineOperatorRoute({
      method: 'post',
      path: '/admin/orgs/:org_id/api-keys',
      operation_id: 'createFirstApiKey',
      summary: 'Make an API key for an org',
      description:
        'As the org would itself, so that a new org gets its first key. It belongs to no member: no change of a member caps it.',
      tag: 'Operator',
      status: 201,
      bare: true,
      secret: true,
      params: orgParams,
      body: createKeyBody,
      example: KEY_EXAMPLE,
      response: createdKey,
      errors: ['org_not_found', 'conflict'],
      audit: { action: 'api_key.create', target: 'api_key' },
      handler: async (ctx) => {
        const key = await createKey(deps, ctx.params.org_id, ctx.body, ctx.credential);
        ctx.audit.target(key.id);
        ctx.audit.changes({ name: key.name, scopes: key.scopes, key_prefix: key.key_prefix });
        return { bare: key };
      },
    }),
  ];
}
