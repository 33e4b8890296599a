// Routes of orgs and their API keys: the org's own, and the operator's.
import { z } from 'zod';
import { offsetQuery, pageMeta, pageMetaOf } from '../http/pagination.ts';
import { defineOperatorRoute, defineRoute, type Route } from '../http/route.ts';
import { changeOrg, createKey, createOrg, getOrg, listKeys, type OrgsDeps, revokeKey } from './orgs.ts';
import {
  createdKey,
  createKeyBody,
  createOrgBody,
  deletedKey,
  keyItem,
  keyParams,
  orgAnswer,
  orgParams,
  orgRecord,
  patchOrgBody,
} from './schema.ts';

const page = z.object(offsetQuery);
const KEY_EXAMPLE = { name: 'ci', scopes: ['ingest:write', 'traces:read'] };

/** What an org does for itself. */
export function orgRoutes(deps: OrgsDeps): Route[] {
  return [
    defineRoute({
      method: 'get',
      path: '/orgs/:org_id',
      operation_id: 'getOrg',
      summary: 'The org record',
      tag: 'Organization',
      scope: 'org:read',
      params: orgParams,
      response: orgRecord,
      handler: (ctx) => ({ data: getOrg(deps, ctx.org_id) }),
    }),
    defineRoute({
      method: 'get',
      path: '/orgs/:org_id/api-keys',
      operation_id: 'listApiKeys',
      summary: 'API keys of the org, newest first; never their secrets',
      tag: 'Organization',
      scope: 'org:read',
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
      description: 'raw_key is shown in this answer and never again. The new key holds at most what the caller may do.',
      tag: 'Organization',
      scope: 'org:write',
      status: 201,
      bare: true,
      secret: true,
      params: orgParams,
      body: createKeyBody,
      example: KEY_EXAMPLE,
      response: createdKey,
      handler: async (ctx) => ({ bare: await createKey(deps, ctx.org_id, ctx.body, ctx.credential) }),
    }),
    defineRoute({
      method: 'delete',
      path: '/orgs/:org_id/api-keys/:key_id',
      operation_id: 'revokeApiKey',
      summary: 'Revoke an API key',
      description: 'It is refused everywhere within a second.',
      tag: 'Organization',
      scope: 'org:write',
      params: keyParams,
      response: deletedKey,
      errors: ['api_key_not_found'],
      handler: async (ctx) => {
        await revokeKey(deps, ctx.org_id, ctx.params.key_id);
        return { data: { id: ctx.params.key_id, deleted: true as const } };
      },
    }),
  ];
}

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
      example: { org_id: 'org_acme', name: 'Acme', plan_name: 'pro', owner: { user_id: 'user_1', email: 'owner@example.com' } },
      response: orgAnswer,
      errors: ['conflict'],
      handler: async (ctx) => {
        const org = await createOrg(deps, ctx.body);
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
      response: z.array(orgRecord),
      meta: pageMeta,
      handler: (ctx) => {
        const { limit, offset } = ctx.query;
        const orgs = deps.orgs.list();
        return { data: orgs.slice(offset, offset + limit), meta: pageMetaOf(orgs.length, limit, offset) };
      },
    }),
    defineOperatorRoute({
      method: 'patch',
      path: '/admin/orgs/:org_id',
      operation_id: 'changeOrg',
      summary: 'Change fields of an org',
      tag: 'Operator',
      params: orgParams,
      body: patchOrgBody,
      example: { plan_name: 'enterprise' },
      response: orgAnswer,
      errors: ['org_not_found'],
      handler: async (ctx) => {
        const org = await changeOrg(deps, ctx.params.org_id, ctx.body);
        return { data: { ...org, org } };
      },
    }),
    defineOperatorRoute({
      method: 'post',
      path: '/admin/orgs/:org_id/api-keys',
      operation_id: 'createFirstApiKey',
      summary: 'Make an API key for an org',
      description: 'As the org would itself, so that a new org gets its first key.',
      tag: 'Operator',
      status: 201,
      bare: true,
      secret: true,
      params: orgParams,
      body: createKeyBody,
      example: KEY_EXAMPLE,
      response: createdKey,
      errors: ['org_not_found'],
      handler: async (ctx) => ({ bare: await createKey(deps, ctx.params.org_id, ctx.body, ctx.credential) }),
    }),
  ];
}
