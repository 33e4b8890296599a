// Who is calling. A union, so that every kind of caller is told apart where it matters and nowhere else.
import type { Permission, Role, Scope } from './permissions.ts';
import { keyMay, roleMay } from './permissions.ts';

/** An org's API key. It never counts as an owner. */
export interface ApiKeyCredential {
  kind: 'api_key';
  org_id: string;
  /** ak_… */
  key_id: string;
  scopes: ReadonlySet<Scope>;
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
  return credential.kind === 'api_key' ? keyMay(credential.scopes, permission) : roleMay(credential.role, permission);
}
