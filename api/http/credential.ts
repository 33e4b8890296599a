// Who is calling. A union, so that every kind of caller is told apart where it matters and nowhere else.
import type { Scope } from '../../schemas/records/api_key.ts';
import type { Permission, Role } from './permissions.ts';
import { keyMay, roleMay } from './permissions.ts';

/** An org's API key. It never counts as an owner. */
export interface ApiKeyCredential {
  kind: 'api_key';
  org_id: string;
  /** ak_… */
  key_id: string;
  scopes: ReadonlySet<Scope>;
  /** The member to whom the key belongs. Left out for a key of the operator or the bootstrap, which belongs to no member. */
  maker?: KeyMaker;
}

/** The member behind an API key. The key may do at most what this member may do now. */
export interface KeyMaker {
  user_id: string;
  /** joined_at of the membership in which the key was made; a later membership of the same person does not bring the key back. */
  member_since: string;
  /** The role that the member has now. */
  role: Role;
}

/** A person with a valid token who is a member of the org that the request names. */
export interface UserCredential {
  kind: 'user';
  org_id: string;
  user_id: string;
  email: string | null;
  role: Role;
}

/** A person with a valid token, whatever orgs they belong to. */
export interface PersonCredential {
  kind: 'person';
  /** The token's sub. */
  user_id: string;
  /** Lower case; null where the token names none, or names it as not verified. */
  email: string | null;
  /** Seconds since the epoch at which the token ends; null where it does not say (in development only). */
  expires_at: number | null;
}

/** Whoever shows the admin token: runs the service, belongs to no org. */
export interface OperatorCredential {
  kind: 'operator';
}

/** A caller on a route that asks for no credential. */
export interface AnonymousCredential {
  kind: 'anonymous';
}

export type OrgCredential = ApiKeyCredential | UserCredential;
export type Credential = OrgCredential | PersonCredential | OperatorCredential | AnonymousCredential;

/** Whether the caller may do, anywhere in the org, what needs the permission. */
export function may(credential: OrgCredential, permission: Permission): boolean {
  if (credential.kind === 'user') return roleMay(credential.role, permission);
  const { scopes, maker } = credential;
  return keyMay(scopes, permission) && (maker === undefined || roleMay(maker.role, permission));
}
