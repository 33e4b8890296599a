// Routes of API keys: list, create, limit, revoke.
import { z } from 'zod';
import { fromTo } from '../../http/changes.ts';
import { orgParams } from '../../http/common_params.ts';
import { pageOf, pageQuery } from '../../http/list_pages.ts';
import { pageMeta } from '../../http/pagination.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { keyLimits } from '../../../schemas/records/api_key.ts';
import { type KeyLimitsDeps, listKeys, setKeyLimits } from './key_limits.ts';
import {
  createdKey,
  createKeyBody,
  deletedKey,
  givenKeyLimits,
  KEY_EXAMPLE,
  KEY_LIMITS_EXAMPLE,
  keyItem,
  keyParams,
} from './key_schema.ts';
import { givenLimits } from './key_limit_rules.ts';
import { createKey, type OrgsDeps, revokeKey } from './orgs.ts';

const TAG = 'Organization';
const SET = [...(Object.keys(keyLimits.shape) as (keyof typeof keyLimits.shape)[]), 'capture'] as const;
const LIMIT_RULES =
  'A call of a model that matches none of `models`, or an event about one, returns 403 `forbidden`. Past a rate or the budget, requests return 429 `rate_limited` with Retry-After. `labels` fill the user and the department of events that name none.';

export function keyRoutes(deps: OrgsDeps & KeyLimitsDeps): Route[] {
  return [listApiKeysRoute(deps), createApiKeyRoute(deps), limitApiKeyRoute(deps), revokeApiKeyRoute(deps)];
}

function listApiKeysRoute(deps: KeyLimitsDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/orgs/:org_id/api-keys',
    operation_id: 'listApiKeys',
    summary: 'List API keys',
    description:
      'Returns the API keys of the organization with their limits and their use, newest first, without their secrets.',
    tag: TAG,
    permission: 'org:read',
    params: orgParams,
    query: pageQuery,
    response: z.array(keyItem),
    meta: pageMeta,
    handler: async ({ org_id, query }) => pageOf(await listKeys(deps, org_id), query),
  });
}

function createApiKeyRoute(deps: OrgsDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/orgs/:org_id/api-keys',
    operation_id: 'createApiKey',
    summary: 'Create an API key',
    description: `\`raw_key\` is shown in this response only. The key has at most the permissions of the caller. It belongs to the member who creates it, or to the member behind the API key that creates it: if that member gets a lesser role, the key keeps at most the permissions of that role; if the member is removed, the key is revoked permanently. An organization has at most 1,000 API keys; past that, the request fails with 409 \`conflict\`. ${LIMIT_RULES}`,
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
      audit.changes({ name: key.name, scopes: key.scopes, key_prefix: key.key_prefix, ...givenLimits(body) });
      return { bare: key };
    },
  });
}

function limitApiKeyRoute(deps: KeyLimitsDeps): Route {
  return defineRoute({
    method: 'patch',
    path: '/orgs/:org_id/api-keys/:key_id',
    operation_id: 'limitApiKey',
    summary: 'Set the limits of an API key',
    description: `Sets the limits that are given, and what the gateway stores of calls (\`capture\`). A limit that is left out stays; null clears it. Limits apply in every process within a second. An API key with limits of its own cannot change limits. ${LIMIT_RULES}`,
    tag: TAG,
    permission: 'api_keys:write',
    audit: { action: 'api_key.update', target: 'api_key', param: 'key_id' },
    params: keyParams,
    body: givenKeyLimits,
    example: KEY_LIMITS_EXAMPLE,
    response: keyItem,
    errors: ['api_key_not_found'],
    handler: async ({ credential, params, body, audit }) => {
      const { before, after, key } = await setKeyLimits(deps, credential, params.key_id, body);
      audit.changes(fromTo(before, after, SET));
      return { data: key };
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
