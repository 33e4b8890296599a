// Routes of an org's own record and its API keys.
import { z } from 'zod';
import { pageMeta } from '../../http/pagination.ts';
import { orgParams } from '../../http/common_params.ts';
import { pageOf, pageQuery } from '../../http/list_pages.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { createKey, listKeys, type OrgsDeps, revokeKey, viewOrg } from './orgs.ts';
import { createdKey, createKeyBody, deletedKey, KEY_EXAMPLE, keyItem, keyParams, orgView } from './schema.ts';

const TAG = 'Organization';

/** What an org does for itself. */
export function orgRoutes(deps: OrgsDeps): Route[] {
  return [getOrgRoute(deps), listApiKeysRoute(deps), createApiKeyRoute(deps), revokeApiKeyRoute(deps)];
}

function getOrgRoute(deps: OrgsDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/orgs/:org_id',
    operation_id: 'getOrg',
    summary: 'The org record',
    description:
      'plan_name, overage_budget_usd and rate_limits are for callers with the permission billing:view; for others they are left out.',
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
    summary: 'API keys of the org, newest first; never their secrets',
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
    summary: 'Make an API key',
    description:
      'raw_key is shown in this answer and never again. The new key holds at most what the caller may do. It belongs to the member who makes it, or to the member behind the API key that does: when this member gets a lesser role, the key keeps at most what that role may do; when the member is removed, the key is revoked for ever. An organization has at most 1,000 API keys; beyond that the answer is 409.',
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
    description: 'It is refused everywhere within a second.',
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
