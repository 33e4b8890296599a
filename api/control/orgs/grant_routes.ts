// Routes of grants: list, create and revoke. A grant gives one member permissions on one resource,
// in addition to their role.
import { z } from 'zod';
import { pageMeta } from '../../http/pagination.ts';
import { orgParams } from '../../http/common_params.ts';
import { pageOf, pageQuery } from '../../http/list_pages.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { createGrantBody, deletedGrant, grantItem, grantParams } from './grant_schema.ts';
import { createGrant, type GrantsDeps, listGrants, revokeGrant } from './grants.ts';

const TAG = 'Organization';

export function grantRoutes(deps: GrantsDeps): Route[] {
  return [listGrantsRoute(deps), createGrantRoute(deps), deleteGrantRoute(deps)];
}

function listGrantsRoute(deps: GrantsDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/orgs/:org_id/grants',
    operation_id: 'listGrants',
    summary: 'List grants',
    description: 'Returns the grants in force, newest first.',
    tag: TAG,
    permission: 'grants:edit',
    params: orgParams,
    query: pageQuery,
    response: z.array(grantItem),
    meta: pageMeta,
    handler: ({ org_id, query }) => pageOf(listGrants(deps, org_id), query),
  });
}

function createGrantRoute(deps: GrantsDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/orgs/:org_id/grants',
    operation_id: 'createGrant',
    summary: 'Create a grant',
    description:
      'Gives one member permissions on one resource until `expires_at`, in addition to their role. A grant also ends with the membership.\n\nPermissions by resource type: `trace`: traces:read, traces:export. `agent`: agents:read, agents:write. `judge`: judges:read, judges:run, judges:write. `dataset`: datasets:read, datasets:write, judges:run (to run it with any judge). A resource that does not exist returns 404.',
    tag: TAG,
    permission: 'grants:edit',
    audit: { action: 'grant.create', target: 'grant' },
    params: orgParams,
    body: createGrantBody,
    example: {
      user_id: 'user_2',
      resource: { type: 'trace', id: 'trc_0123456789abcdef' },
      permissions: ['traces:read'],
      expires_at: '2027-01-01T00:00:00Z',
    },
    status: 201,
    response: grantItem,
    errors: [
      'member_not_found',
      'trace_not_found',
      'agent_not_found',
      'judge_not_found',
      'dataset_not_found',
      'conflict',
    ],
    handler: async ({ org_id, body, signal, audit }) => {
      const grant = await createGrant(deps, org_id, body, signal);
      const { grant_id, user_id, resource, permissions, expires_at } = grant;
      audit.target(grant_id);
      audit.changes({ user_id, resource, permissions, expires_at });
      return { data: grant };
    },
  });
}

function deleteGrantRoute(deps: GrantsDeps): Route {
  return defineRoute({
    method: 'delete',
    path: '/orgs/:org_id/grants/:grant_id',
    operation_id: 'deleteGrant',
    summary: 'Revoke a grant',
    description: 'Ends the grant at once.',
    tag: TAG,
    permission: 'grants:edit',
    audit: { action: 'grant.delete', target: 'grant', param: 'grant_id' },
    params: grantParams,
    response: deletedGrant,
    errors: ['not_found'],
    handler: async ({ org_id, params, audit }) => {
      const { user_id, resource, permissions } = await revokeGrant(deps, org_id, params.grant_id);
      audit.changes({ user_id, resource, permissions });
      return { data: { grant_id: params.grant_id, deleted: true as const } };
    },
  });
}
