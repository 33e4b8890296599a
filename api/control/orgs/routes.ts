// Routes of an org's own record and its API keys.
import { z } from 'zod';
import { offsetQuery, pageMeta, pageMetaOf } from '../../http/pagination.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { createKey, listKeys, type OrgsDeps, revokeKey, viewOrg } from './orgs.ts';
import {
  createdKey,
  createKeyBody,
  deletedKey,
  KEY_EXAMPLE,
  keyItem,
  keyParams,
  orgParams,
  orgView,
} from './schema.ts';

const page = z.object(offsetQuery);

/** What an org does for itself. */
export function orgRoutes(deps: OrgsDeps): Route[] {
  return [
    defineRoute({
      method: 'get',
      path: '/orgs/:org_id',
      operation_id: 'getOrg',
      summary: 'The org record',
      tag: 'Organization',
      permission: 'org:read',
      params: orgParams,
      description:
        'plan_name, overage_budget_usd and rate_limits are for callers with the permission billing:view; for others they are left out.',
      response: orgView,
      handler: (ctx) => ({ data: viewOrg(deps, ctx.credential) }),
    }),
    defineRoute({
      method: 'get',
      path: '/orgs/:org_id/api-keys',
      operation_id: 'listApiKeys',
      summary: 'API keys of the org, newest first; never their secrets',
      tag: 'Organization',
      permission: 'org:read',
      params: orgParams,
      query: page,
      response: z.array(keyItem),
      meta: pageMeta,
      handler: (ctx) => {
        const { limit, offset } = ctx.query;
        const keys = listKeys(deps, ctx.org_id);
        return { data: keys.slice(offset, offset + limit), meta: pageMetaOf(keys.length, limit, offset) };
      },
    }),
    defineRoute({
      method: 'post',
      path: '/orgs/:org_id/api-keys',
      operation_id: 'createApiKey',
      summary: 'Make an API key',
      description:
        'raw_key is shown in this answer and never again. The new key holds at most what the caller may do. It belongs to the member who makes it, or to the member behind the API key that does: when this member gets a lesser role, the key keeps at most what that role may do; when the member is removed, the key is revoked for ever. An organization has at most 1,000 API keys; beyond that the answer is 409.',
      tag: 'Organization',
      permission: 'api_keys:write',
      status: 201,
      bare: true,
      secret: true,
      params: orgParams,
      body: createKeyBody,
      example: KEY_EXAMPLE,
      response: createdKey,
      errors: ['conflict'],
      audit: { action: 'api_key.create', target: 'api_key' },
      handler: async (ctx) => {
        const key = await createKey(deps, ctx.org_id, ctx.body, ctx.credential);
        ctx.audit.target(key.id);
        ctx.audit.changes({ name: key.name, scopes: key.scopes, key_prefix: key.key_prefix });
        return { bare: key };
      },
    }),
    defineRoute({
      method: 'delete',
      path: '/orgs/:org_id/api-keys/:key_id',
      operation_id: 'revokeApiKey',
      summary: 'Revoke an API key',
      description: 'It is refused everywhere within a second.',
      tag: 'Organization',
      permission: 'api_keys:write',
      params: keyParams,
      response: deletedKey,
      errors: ['api_key_not_found'],
      audit: { action: 'api_key.revoke', target: 'api_key', param: 'key_id' },
      handler: async (ctx) => {
        await revokeKey(deps, ctx.org_id, ctx.params.key_id);
        return { data: { id: ctx.params.key_id, deleted: true as const } };
      },
    }),
  ];
}
