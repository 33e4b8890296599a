// From headers to a credential. Keys are looked up by their SHA-256 in memory; nothing on this path leaves the process.
// Guarantees: a wrong, missing or revoked credential is 401, another org's 403, a scope that is lacking 403.
import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Credential, OperatorCredential, OrgCredential } from './credential.ts';
import { ApiError } from './errors.ts';
import { type Access, holds, type Scope } from './permissions.ts';

/** What auth needs to know of API keys. */
export interface KeyLookup {
  /** The key whose raw text has this SHA-256 (lower-case hex), while it is valid. */
  byHash(sha256Hex: string): { hash: string; credential: OrgCredential } | null;
}

export interface AuthDeps {
  keys: KeyLookup;
  /** The operator's token. */
  adminToken: string;
}

export const KEY_PREFIX = 'sk_svc_';
const WWW_AUTHENTICATE = { 'WWW-Authenticate': 'Bearer realm="service"' };

/** SHA-256 of a raw key, lower-case hex: what is stored in its stead. */
export const hashKey = (raw: string): string => hash('sha256', raw, 'hex');

function unauthenticated(detail: string): ApiError {
  return new ApiError('unauthenticated', detail, { headers: WWW_AUTHENTICATE });
}

/** The token of an Authorization header, null where there is none of the Bearer kind. */
function bearerOf(headers: IncomingHttpHeaders): string | null {
  const given = headers.authorization;
  if (given === undefined || given.length < 8 || given.slice(0, 7).toLowerCase() !== 'bearer ') return null;
  return given.slice(7).trim();
}

/** The raw credential of a request, whichever header carries it; null without one. */
export function rawCredentialOf(headers: IncomingHttpHeaders): string | null {
  const own = headers['x-org-api-key'];
  return own === undefined ? bearerOf(headers) : String(own);
}

/**
 * Finds out which org is calling. X-Org-Id may be left out, as a key names its org; given, it must be the key's.
 * @throws ApiError unauthenticated, cross_org_access
 */
function authenticateOrg(headers: IncomingHttpHeaders, deps: AuthDeps): OrgCredential {
  const raw = rawCredentialOf(headers);
  if (raw === null || raw === '') throw unauthenticated('An API key is needed: X-Org-Api-Key, or Authorization: Bearer.');
  const digest = hashKey(raw);
  const found = raw.startsWith(KEY_PREFIX) ? deps.keys.byHash(digest) : null;
  if (found === null || !timingSafeEqual(Buffer.from(found.hash, 'latin1'), Buffer.from(digest, 'latin1'))) {
    throw unauthenticated('The API key is not valid.');
  }
  const named = headers['x-org-id'];
  if (named !== undefined && named !== found.credential.org_id)
    throw new ApiError('cross_org_access', "X-Org-Id is not the credential's org.");
  return found.credential;
}

/**
 * Checks the admin token in constant time.
 * @throws ApiError unauthenticated; forbidden for an org's valid key, which no scope lets in here
 */
function authenticateOperator(headers: IncomingHttpHeaders, deps: AuthDeps): OperatorCredential {
  const token = bearerOf(headers);
  if (token !== null && token !== '') {
    // Digests have one length, whatever was given.
    if (timingSafeEqual(Buffer.from(hashKey(token), 'latin1'), Buffer.from(hashKey(deps.adminToken), 'latin1')))
      return { kind: 'operator' };
  }
  const raw = rawCredentialOf(headers);
  if (raw !== null && deps.keys.byHash(hashKey(raw)) !== null)
    throw new ApiError('forbidden', 'This endpoint takes the operator token, not an API key.');
  throw unauthenticated('The operator token is needed: Authorization: Bearer.');
}

/**
 * The org's credential for a route that needs `scope`.
 * @param pathOrg the org that the path names, undefined where it names none
 * @throws ApiError unauthenticated, cross_org_access, forbidden
 */
export function authorizeOrg(scope: Scope, headers: IncomingHttpHeaders, pathOrg: string | undefined, deps: AuthDeps): OrgCredential {
  const credential = authenticateOrg(headers, deps);
  if (pathOrg !== undefined && pathOrg !== credential.org_id)
    throw new ApiError('cross_org_access', "The path's org is not the credential's.");
  if (!holds(credential.scopes, scope)) throw new ApiError('forbidden', `The credential lacks the scope ${scope}.`);
  return credential;
}

/** The credential of a request to a route of this access; throws as the functions above do. */
export function authorize(access: Access, headers: IncomingHttpHeaders, pathOrg: string | undefined, deps: AuthDeps): Credential {
  if (access === 'public') return { kind: 'anonymous' };
  if (access === 'operator') return authenticateOperator(headers, deps);
  return authorizeOrg(access, headers, pathOrg, deps);
}
