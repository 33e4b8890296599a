// Routes of the record of an organization and of its API keys.
import { z } from 'zod';
import { pageMeta } from '../../http/pagination.ts';
import { orgParams } from '../../http/common_params.ts';
import { pageOf, pageQuery } from '../../http/list_pages.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { createKey, listKeys, type OrgsDeps, revokeKey, viewOrg } from './orgs.ts';
import { createdKey, createKeyBody, deletedKey, KEY_EXAMPLE, keyItem, keyParams, orgView } from './schema.ts';

const TAG = 'Organization';

export function orgRoutes(deps: OrgsDeps): Route[] {
  return [getOrgRoute(deps), listApiKeysRoute(deps), createApiKeyRoute(deps), revokeApiKeyRoute(deps)];
}

function getOrgRoute(deps: OrgsDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/orgs/:org_id',
    operation_id: 'getOrg',
    summary: 'Get the organization',
    description:
      '`plan_name`, `overage_budget_usd` and `rate_limits` are included only for callers with the permission `billing:view`.',
    tag: TAG,
    permission: 'org:read',
    params: orgParams,
    response: orgView,
    handler: ({ credential }) => ({ data: viewOrg(deps, credential) }),
  });
}

function listApiKeysRoute(deps: OrgsDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/orgs/:org_id/api-keys',
    operation_id: 'listApiKeys',
    summary: 'List API keys',
    description: 'Returns the API keys of the organization, newest first, without their secrets.',
    tag: TAG,
    permission: 'org:read',
    params: orgParams,
    query: pageQuery,
    response: z.array(keyItem),
    meta: pageMeta,
    handler: ({ org_id, query }) => pageOf(listKeys(deps, org_id), query),
  });
}

function createApiKeyRoute(deps: OrgsDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/orgs/:org_id/api-keys',
    operation_id: 'createApiKey',
    summary: 'Create an API key',
    description:
      '`raw_key` is shown in this response only. The key has at most the permissions of the caller. It belongs to the member who creates it, or to the member behind the API key that creates it: if that member gets a lesser role, the key keeps at most the permissions of that role; if the member is removed, the key is revoked permanently. An organization has at most 1,000 API keys; past that, the request fails with 409 `conflict`.',
    tag: TAG,
    permission: 'api_keys:write',
    audit: { action: 'api_key.create', target: 'api_key' },
    params: orgParams,
    body: createKeyBody,
    example: KEY_EXAMPLE,
    status: 201,
    response: createdKey,
    bare: true,
    secret: true,
    errors: ['conflict'],
    handler: async ({ org_id, credential, body, audit }) => {
      const key = await createKey(deps, org_id, body, credential);
      audit.target(key.id);
      audit.changes({ name: key.name, scopes: key.scopes, key_prefix: key.key_prefix });
      return { bare: key };
    },
  });
}

function revokeApiKeyRoute(deps: OrgsDeps): Route {
  return defineRoute({
    method: 'delete',
    path: '/orgs/:org_id/api-keys/:key_id',
    operation_id: 'revokeApiKey',
    summary: 'Revoke an API key',
    description: 'Every process rejects the key within a second.',
    tag: TAG,
    permission: 'api_keys:write',
    audit: { action: 'api_key.revoke', target: 'api_key', param: 'key_id' },
    params: keyParams,
    response: deletedKey,
    errors: ['api_key_not_found'],
    handler: async ({ org_id, params }) => {
      await revokeKey(deps, org_id, params.key_id);
      return { data: { id: params.key_id, deleted: true as const } };
    },
  });
}
