// The operator's routes of organizations: create, list, update, and create the first API key.
import { z } from 'zod';
import { pageMeta } from '../../http/pagination.ts';
import { fromTo } from '../../http/changes.ts';
import { orgParams } from '../../http/common_params.ts';
import { pageOf, pageQuery } from '../../http/list_pages.ts';
import { defineOperatorRoute, type Route } from '../../http/route.ts';
import { changeOrg, createKey, createOrg, orgItemOf, type OrgsDeps } from './orgs.ts';
import { createdKey, createKeyBody, KEY_EXAMPLE } from './key_schema.ts';
import { createOrgBody, orgAnswer, orgItem, patchOrgBody } from './schema.ts';

const TAG = 'Operator';

export function operatorRoutes(deps: OrgsDeps): Route[] {
  return [createOrgRoute(deps), listOrgsRoute(deps), changeOrgRoute(deps), createFirstApiKeyRoute(deps)];
}

function createOrgRoute(deps: OrgsDeps): Route {
  return defineOperatorRoute({
    method: 'post',
    path: '/admin/orgs',
    operation_id: 'createOrg',
    summary: 'Create an organization',
    description:
      'Creates an organization with its owner. An `org_id` that is in use, or whose deletion is not complete, returns 409 `conflict`.',
    tag: TAG,
    audit: { action: 'org.create', target: 'org' },
    body: createOrgBody,
    example: {
      org_id: 'org_acme',
      name: 'Acme',
      plan_name: 'pro',
      owner: { user_id: 'user_1', email: 'owner@example.com' },
    },
    status: 201,
    response: orgAnswer,
    errors: ['conflict'],
    handler: async ({ body, audit }) => {
      const org = await createOrg(deps, body);
      audit.org(org.org_id);
      audit.target(org.org_id);
      audit.changes({ name: org.name, plan_name: org.plan_name, owner: org.owner });
      return { data: { ...org, org } };
    },
  });
}

function listOrgsRoute(deps: OrgsDeps): Route {
  return defineOperatorRoute({
    method: 'get',
    path: '/admin/orgs',
    operation_id: 'listOrgs',
    summary: 'List organizations',
    description: 'Returns every organization, sorted by id.',
    tag: TAG,
    query: pageQuery,
    response: z.array(orgItem),
    meta: pageMeta,
    handler: ({ query }) => {
      const { data, meta } = pageOf(deps.orgs.list(), query);
      return { data: data.map(orgItemOf), meta };
    },
  });
}

function changeOrgRoute(deps: OrgsDeps): Route {
  return defineOperatorRoute({
    method: 'patch',
    path: '/admin/orgs/:org_id',
    operation_id: 'changeOrg',
    summary: 'Update an organization',
    description:
      'Changes the fields that are given. A new owner replaces the current one, who becomes an admin. An organization that leaves the plan `enterprise` loses its own `rate_limits`.',
    tag: TAG,
    audit: { action: 'org.update', target: 'org', param: 'org_id' },
    params: orgParams,
    body: patchOrgBody,
    example: { plan_name: 'enterprise' },
    response: orgAnswer,
    errors: ['org_not_found'],
    handler: async ({ params, body, audit }) => {
      const { before, after: org } = await changeOrg(deps, params.org_id, body);
      audit.changes(fromTo(before, org, ['name', 'plan_name', 'owner', 'overage_budget_usd', 'rate_limits']));
      return { data: { ...org, org } };
    },
  });
}

function createFirstApiKeyRoute(deps: OrgsDeps): Route {
  return defineOperatorRoute({
    method: 'post',
    path: '/admin/orgs/:org_id/api-keys',
    operation_id: 'createFirstApiKey',
    summary: 'Create an API key for an organization',
    description:
      'Works like the endpoint of the organization itself, so that a new organization gets its first key. The key belongs to no member: no change of a member limits or revokes it.',
    tag: TAG,
    audit: { action: 'api_key.create', target: 'api_key' },
    params: orgParams,
    body: createKeyBody,
    example: KEY_EXAMPLE,
    status: 201,
    response: createdKey,
    bare: true,
    secret: true,
    errors: ['org_not_found', 'conflict'],
    handler: async ({ credential, params, body, audit }) => {
      const key = await createKey(deps, params.org_id, body, credential);
      audit.target(key.id);
      audit.changes({ name: key.name, scopes: key.scopes, key_prefix: key.key_prefix });
      return { bare: key };
    },
  });
}
