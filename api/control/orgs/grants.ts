// Creates, lists and revokes grants. A grant gives a member permissions on one resource until it
// expires.
import { randomUUID } from 'node:crypto';
import { memberSince } from '../../../schemas/records/org.ts';
import { isoMillis } from '../../../schemas/formats/times.ts';
import type { Resource } from '../../http/auth.ts';
import type { Permission } from '../../http/permissions.ts';
import { ApiError } from '../../http/errors.ts';
import { GRANTABLE, type GrantRecord } from '../../../schemas/records/grant.ts';
import type { CreateGrantBody, GrantItem } from './grant_schema.ts';
import type { GrantStore } from './grant_store.ts';
import { type OrgsDeps, storeUnavailable } from './orgs.ts';

/**
 * Maximum grants in force in one organization. Several processes that create grants at once may
 * exceed it slightly.
 */
const GRANTS_MAX = 1000;

/**
 * Resolves if the organization has the resource.
 *
 * @throws ApiError 404 of the resource's type, cross_org_access, upstream_unavailable
 */
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
      `permissions[${foreign}]: on a ${resource.type} must be ${grantable.join(', ')}`,
    );
  const expires = isoMillis(body.expires_at);
  if (!(expires > now)) throw new ApiError('invalid_request', 'expires_at: is not in the future');
  const member = deps.orgs.memberOf(org_id, user_id);
  if (member === null) throw new ApiError('member_not_found', 'user_id: is not an active member of this organization');
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
      throw new ApiError('conflict', `The organization has ${GRANTS_MAX} grants, the most that it can have.`);
    await deps.grants.create(grant);
  } catch (error) {
    throw error instanceof ApiError ? error : storeUnavailable(error);
  }
  return grantItemOf(grant);
}

/** Returns the grants in force, newest first. */
export function listGrants(deps: GrantsDeps, org_id: string): GrantItem[] {
  return deps.grants.list(org_id).map(grantItemOf);
}

/**
 * Revokes a grant: every process rejects requests that need it within a second. @throws ApiError
 * not_found
 */
export async function revokeGrant(deps: GrantsDeps, org_id: string, grant_id: string): Promise<GrantItem> {
  const removed = await deps.grants.remove(org_id, grant_id).catch((error: unknown) => {
    throw storeUnavailable(error);
  });
  if (removed === null) throw new ApiError('not_found', 'The organization has no grant with this id.');
  return grantItemOf(removed);
}

function grantItemOf({ grant_id, user_id, resource, permissions, expires_at, created_at }: GrantRecord): GrantItem {
  return { grant_id, user_id, resource, permissions, expires_at, created_at };
}
