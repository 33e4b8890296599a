// The caller of a request, as a union of the kinds of credentials.
import type { CaptureMode, KeyLimits, Scope } from '../../schemas/records/api_key.ts';
import type { Permission, Role } from './permissions.ts';
import { keyMay, roleMay } from './permissions.ts';

/** An organization's API key. It never counts as an owner. */
export interface ApiKeyCredential {
  kind: 'api_key';
  org_id: string;
  /** Id of the key, ak_… */
  key_id: string;
  scopes: ReadonlySet<Scope>;
  /** Left out for a key without limits and labels. */
  limits?: KeyLimits;
  /** usage: the gateway stores no content of calls with the key. */
  capture?: CaptureMode;
  /** The member who owns the key. Left out for a key of the operator or the bootstrap. */
  maker?: KeyMaker;
}

/** The member behind an API key. The key may do at most what this member may do at present. */
export interface KeyMaker {
  user_id: string;
  /**
   * joined_at of the membership in which the key was created; a later membership of the same person
   * does not revive the key.
   */
  member_since: string;
  /** The member's present role. */
  role: Role;
}

/** A person with a valid token who is a member of the organization that the request names. */
export interface UserCredential {
  kind: 'user';
  org_id: string;
  user_id: string;
  email: string | null;
  role: Role;
}

/** A person with a valid token, member of any organizations or none. */
export interface PersonCredential {
  kind: 'person';
  /** The token's sub. */
  user_id: string;
  /** Lower case; null where the token names none, or names one that is not verified. */
  email: string | null;
  /**
   * Expiry of the token, seconds since the epoch; null for a token without exp (in development
   * only).
   */
  expires_at: number | null;
}

/** The holder of the admin token, who runs the service and belongs to no organization. */
export interface OperatorCredential {
  kind: 'operator';
}

/** A caller of a route that requires no credential. */
export interface AnonymousCredential {
  kind: 'anonymous';
}

export type OrgCredential = ApiKeyCredential | UserCredential;
export type Credential = OrgCredential | PersonCredential | OperatorCredential | AnonymousCredential;

/** Returns true if the caller has the permission everywhere in the organization. */
export function may(credential: OrgCredential, permission: Permission): boolean {
  if (credential.kind === 'user') return roleMay(credential.role, permission);
  const { scopes, maker } = credential;
  return keyMay(scopes, permission) && (maker === undefined || roleMay(maker.role, permission));
}

/** Returns the caller as the author of what the request writes. */
export function authorOf(credential: OrgCredential): { type: 'user' | 'api_key'; id: string } {
  return credential.kind === 'api_key'
    ? { type: 'api_key', id: credential.key_id }
    : { type: 'user', id: credential.user_id };
}
