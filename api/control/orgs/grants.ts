// What can be done with grants: giving a member permissions on one thing until some day, and taking them back.
import { randomUUID } from 'node:crypto';
import { memberSince } from '../../../schemas/records/org.ts';
import { isoMillis } from '../../../schemas/formats/times.ts';
import type { Resource } from '../../http/auth.ts';
import type { Permission } from '../../http/permissions.ts';
import { ApiError } from '../../http/errors.ts';
import { GRANTABLE, type GrantRecord } from '../../../schemas/records/grant.ts';
import type { CreateGrantBody, GrantItem } from './grant_schema.ts';
import type { GrantStore } from './grant_store.ts';
import { type OrgsDeps, storeAway } from './orgs.ts';

/** Grants that hold in an org; a few more where several processes make some at once. */
const GRANTS_MAX = 1000;

/** Resolves when the org has the thing. @throws ApiError 404 of its type, cross_org_access, upstream_unavailable */
export type Exists = (org_id: string, id: string, signal: AbortSignal) => Promise<void> | void;

export interface GrantsDeps extends OrgsDeps {
  grants: GrantStore;
  exists: Readonly<Record<Resource['type'], Exists>>;
}

/** @throws ApiError invalid_request, member_not_found, conflict, upstream_unavailable, or 404 of the resource's type */
export async function createGrant(
  deps: GrantsDeps,
  org_id: string,
  body: CreateGrantBody,
  signal: AbortSignal,
): Promise<GrantItem> {
  const now = deps.now();
  const { user_id, resource } = body;
  const grantable: readonly Permission[] = GRANTABLE[resource.type];
  const foreign = body.permissions.findIndex((permission) => !grantable.includes(permission));
  if (foreign >= 0)
    throw new ApiError(
      'invalid_request',
      `permissions[${String(foreign)}]: on a ${resource.type} takes ${grantable.join(', ')}`,
    );
  const expires = isoMillis(body.expires_at);
  if (!(expires > now)) throw new ApiError('invalid_request', 'expires_at: is not in the future');
  const member = deps.orgs.memberOf(org_id, user_id);
  if (member === null) throw new ApiError('member_not_found', 'user_id: is no active member of this org');
  await deps.exists[resource.type](org_id, resource.id, signal);
  const grant: GrantRecord = {
    grant_id: `grt_${randomUUID().replaceAll('-', '')}`,
    org_id,
    user_id,
    member_since: memberSince(member),
    resource,
    permissions: [...new Set(body.permissions)],
    expires_at: new Date(expires).toISOString(),
    created_at: new Date(now).toISOString(),
  };
  try {
    await deps.grants.sweep(org_id);
    if (deps.grants.list(org_id).length >= GRANTS_MAX)
      throw new ApiError('conflict', `The org has ${String(GRANTS_MAX)} grants, the most that it can have.`);
    await deps.grants.create(grant);
  } catch (error) {
    throw error instanceof ApiError ? error : storeAway(error);
  }
  return grantItemOf(grant);
}

/** Grants that hold, newest first. */
export function listGrants(deps: GrantsDeps, org_id: string): GrantItem[] {
  return deps.grants.list(org_id).map(grantItemOf);
}

/** Takes a grant back: it allows nothing from now on, in every process within a second. @throws ApiError not_found */
export async function dropGrant(deps: GrantsDeps, org_id: string, grant_id: string): Promise<GrantItem> {
  const removed = await deps.grants.remove(org_id, grant_id).catch((error: unknown) => {
    throw storeAway(error);
  });
  if (removed === null) throw new ApiError('not_found', 'The org has no grant of this id.');
  return grantItemOf(removed);
}

function grantItemOf({ grant_id, user_id, resource, permissions, expires_at, created_at }: GrantRecord): GrantItem {
  return { grant_id, user_id, resource, permissions, expires_at, created_at };
}
