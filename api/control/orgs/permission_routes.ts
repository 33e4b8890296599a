// Route of the permissions: which roles have each, which scope of an API key gives it, and on which
// resources it can be granted.
import { z } from 'zod';
import { GRANTABLE, grantedResource } from '../../../schemas/records/grant.ts';
import { SCOPES } from '../../../schemas/records/api_key.ts';
import { orgParams } from '../../http/common_params.ts';
import { type Permission, PERMISSIONS, ROLES, roleMay } from '../../http/permissions.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { PERMISSION_WORDS } from './permission_words.ts';

const permissionItem = z
  .object({
    permission: z.string(),
    description: z.string().describe('What the permission allows'),
    roles: z.array(z.enum(ROLES)).describe('Roles that have it, the lowest first'),
    scope: z.enum(SCOPES).nullable().describe('Scope that gives it to an API key; null: no API key can have it'),
    grantable_on: z
      .array(grantedResource.shape.type)
      .describe('Types of resources on which it can be granted to one member'),
  })
  .meta({ id: 'PermissionItem' });

const ITEMS = (Object.keys(PERMISSIONS) as Permission[]).map((permission): z.infer<typeof permissionItem> => ({
  permission,
  description: PERMISSION_WORDS[permission],
  roles: ROLES.filter((role) => roleMay(role, permission)),
  scope: PERMISSIONS[permission].scope,
  grantable_on: grantedResource.shape.type.options.filter((type) =>
    (GRANTABLE[type] as readonly string[]).includes(permission),
  ),
}));

export function permissionRoutes(): Route[] {
  return [listPermissionsRoute()];
}

function listPermissionsRoute(): Route {
  return defineRoute({
    method: 'get',
    path: '/orgs/:org_id/permissions',
    operation_id: 'listPermissions',
    summary: 'List permissions',
    description:
      'Returns every permission with the roles that have it, the scope that gives it to an API key, and the types of resources on which it can be granted. The list is the same for every organization.',
    tag: 'Organization',
    permission: 'org:read',
    params: orgParams,
    response: z.array(permissionItem),
    handler: () => ({ data: ITEMS }),
  });
}
