// An organization with an owner, an admin and a viewer, those who call for it, and an invitation to it.
import type { KeyMaker, OrgCredential } from '../../../api/http/credential.ts';
import { ApiError, type ErrorCode } from '../../../api/http/errors.ts';
import type { Scope } from '../../../schemas/records/api_key.ts';
import { type Invitation } from '../../../api/control/orgs/membership.ts';
import { activeMember, type MemberRole, type OrgRecord } from '../../../schemas/records/org.ts';

export const AT = Date.parse('2026-03-04T05:06:07.000Z');
export const AT_ISO = new Date(AT).toISOString();
export const person = (name: string) => ({ user_id: name, email: `${name}@example.com` });

export function anOrg(members: Record<string, MemberRole> = { ann: 'owner', bob: 'admin', cat: 'viewer' }): OrgRecord {
  return {
    org_id: 'org_a',
    name: 'A',
    plan_name: 'pro',
    overage_budget_usd: null,
    rate_limits: null,
    created_at: AT_ISO,
    updated_at: AT_ISO,
    members: Object.entries(members).map(([name, role]) => activeMember(person(name), role, AT_ISO)),
    transfer: null,
  };
}

/** A person; what the record says of their role counts, not what they had when they called. */
export const caller = (user_id: string, role: MemberRole): OrgCredential => ({
  kind: 'user',
  org_id: 'org_a',
  user_id,
  email: null,
  role,
});
export const aKey = (scopes: readonly Scope[], maker?: KeyMaker): OrgCredential => ({
  kind: 'api_key',
  org_id: 'org_a',
  key_id: 'ak_1',
  scopes: new Set(scopes),
  ...(maker === undefined ? {} : { maker }),
});

export const anInvitation = (over: Partial<Invitation> = {}): Invitation => ({
  email: 'new@example.com',
  role: 'member',
  by: caller('ann', 'owner'),
  user_id: 'usr_1',
  token_hash: 'h1',
  now: AT,
  ...over,
});

export function codeOf(attempt: () => unknown): ErrorCode | 'done' {
  try {
    attempt();
    return 'done';
  } catch (error) {
    if (error instanceof ApiError) return error.code;
    throw error;
  }
}

export const rolesOf = (org: OrgRecord) => Object.fromEntries(org.members.map(({ user_id, role }) => [user_id, role]));
