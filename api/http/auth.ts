// From headers to a credential. API keys are looked up by their SHA-256 in memory, tokens are verified in this process;
// nothing on this path reads a store. Guarantees: a wrong, missing, expired or revoked credential is 401, another org's 403,
// a permission that is lacking 403 and named.
import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import {
  type Credential,
  may,
  type OperatorCredential,
  type OrgCredential,
  type PersonCredential,
} from './credential.ts';
import { ApiError } from './errors.ts';
import { type Access, keyMay, type Permission, PERMISSIONS, type Role } from './permissions.ts';
import { checkSameSite, sessionCookieOf, TOKEN_SHAPE } from './session_cookie.ts';

/** What auth needs to know of API keys. */
export interface KeyLookup {
  /** The key whose raw text has this SHA-256 (lower-case hex), while it is valid. */
  byHash(sha256Hex: string): { hash: string; credential: OrgCredential } | null;
}

/** Verifies the token of an identity provider. */
export interface TokenVerifier {
  /** @throws ApiError unauthenticated, upstream_unavailable when the provider's keys cannot be had */
  verify(jwt: string): PersonCredential | Promise<PersonCredential>;
}

/** What auth needs to know of who belongs to an org. */
export interface Memberships {
  /** Role of an active member; null where the user is none, or the org is not there. */
  roleOf(org_id: string, user_id: string): Role | null;
}

/** One thing that a grant can open to a member whose role alone does not. */
export interface Resource {
  type: 'trace' | 'agent' | 'judge' | 'dataset';
  id: string;
}

export interface GrantLookup {
  /** Whether an unexpired grant gives the user this permission on this very thing. */
  allows(org_id: string, user_id: string, resource: Resource, permission: Permission): boolean;
}

export interface AuthDeps {
  keys: KeyLookup;
  tokens: TokenVerifier;
  memberships: Memberships;
  grants: GrantLookup;
  /** The operator's token. */
  adminToken: string;
}

/** What of a request decides who may pass. */
export interface AuthRequest {
  method: string;
  headers: IncomingHttpHeaders;
  /** The org that the path names, undefined where it names none. */
  pathOrg: string | undefined;
  /** The things that the request names and that a grant may be for; a grant on any of them lets the caller in. */
  resources?: readonly Resource[];
}

export const KEY_PREFIX = 'sk_svc_';
const WWW_AUTHENTICATE = { 'WWW-Authenticate': 'Bearer realm="service"' };

/** SHA-256 of a raw key, lower-case hex: what is stored in its stead. */
export const hashKey = (raw: string): string => hash('sha256', raw, 'hex');

export function unauthenticated(detail: string, cause?: unknown): ApiError {
  return new ApiError('unauthenticated', detail, { headers: WWW_AUTHENTICATE, cause });
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
  return own === undefined ? (bearerOf(headers) ?? sessionCookieOf(headers)) : String(own);
}

/** Who calls a route of this access. @throws ApiError unauthenticated, forbidden, invalid_request */
export function authenticate(access: Access, request: AuthRequest, deps: AuthDeps): Credential | Promise<Credential> {
  if (access === 'public') return { kind: 'anonymous' };
  if (access === 'operator') return authenticateOperator(request.headers, deps);
  if (access === 'person') return authenticatePerson(request, deps);
  return authenticateOrg(request, deps);
}

/**
 * Who calls for an org: at once for an API key, later for a token that has to be verified. What they may do is not asked yet,
 * so that whoever is known can be counted first.
 * @throws ApiError unauthenticated, cross_org_access, forbidden, invalid_request
 */
export function authenticateOrg(request: AuthRequest, deps: AuthDeps): OrgCredential | Promise<OrgCredential> {
  const { headers } = request;
  const raw = rawCredentialOf(headers);
  if (raw === null || raw === '')
    throw unauthenticated(
      'A credential is needed: X-Org-Api-Key, Authorization: Bearer with an API key or a token, or a session.',
    );
  if (TOKEN_SHAPE.test(raw) && headers['x-org-api-key'] === undefined)
    return authenticatePerson(request, deps).then((person) => memberOf(person, request, deps));
  return keyOf(raw, deps);
}

/**
 * Checks that the caller may do what a route of this access does, in the org that the request names.
 * @throws ApiError cross_org_access, forbidden
 */
export function permit(access: Access, credential: Credential, request: AuthRequest, deps: AuthDeps): void {
  // Whoever came through as one of these may call every route of that access.
  if (access === 'public' || access === 'operator' || access === 'person' || !('org_id' in credential)) return;
  const { headers, pathOrg } = request;
  const named = headers['x-org-id'];
  if (named !== undefined && named !== credential.org_id)
    throw new ApiError('cross_org_access', "X-Org-Id is not the credential's org.");
  if (pathOrg !== undefined && pathOrg !== credential.org_id)
    throw new ApiError('cross_org_access', "The path's org is not the credential's.");
  checkPermission(access, credential, request, deps);
}

function keyOf(raw: string, deps: AuthDeps): OrgCredential {
  const digest = hashKey(raw);
  const found = raw.startsWith(KEY_PREFIX) ? deps.keys.byHash(digest) : null;
  if (found === null || !timingSafeEqual(Buffer.from(found.hash, 'latin1'), Buffer.from(digest, 'latin1')))
    throw unauthenticated('The API key is not valid.');
  return found.credential;
}

/**
 * The key that a page gives in the query of its request, where it can set no header. It may do nothing but write, as URLs end up in
 * histories, in logs of proxies and in the source of the page.
 * @throws ApiError unauthenticated, forbidden
 */
export function authenticateQueryKey(raw: string, deps: AuthDeps): OrgCredential {
  const credential = keyOf(raw, deps);
  if (credential.kind === 'api_key' && credential.scopes.size === 1 && credential.scopes.has('ingest:write'))
    return credential;
  throw new ApiError(
    'forbidden',
    'api_key: takes a key whose only scope is ingest:write; send any other key in X-Org-Api-Key.',
  );
}

/** Returns true if a header of the request holds a credential. */
export const hasCredentialHeader = ({ authorization, 'x-org-api-key': key }: IncomingHttpHeaders): boolean =>
  authorization !== undefined || key !== undefined;

/** The person behind a token, from the header or the session cookie; by cookie, what changes something must come from our own site. */
async function authenticatePerson(request: AuthRequest, deps: AuthDeps): Promise<PersonCredential> {
  const bearer = bearerOf(request.headers);
  const token = bearer ?? sessionCookieOf(request.headers);
  if (token === null || !TOKEN_SHAPE.test(token)) {
    const raw = rawCredentialOf(request.headers);
    if (raw !== null && deps.keys.byHash(hashKey(raw)) !== null)
      throw new ApiError('forbidden', 'This endpoint takes the token of a person, not an API key.');
    throw unauthenticated(
      token === null || token === ''
        ? 'A token is needed: Authorization: Bearer, or a session.'
        : 'The token is not valid.',
    );
  }
  const person = await deps.tokens.verify(token);
  if (bearer === null) checkSameSite(request.method, request.headers);
  return person;
}

/** What the person is in the org that the request names. The role is the member record's, never a claim of the token. */
function memberOf(person: PersonCredential, { headers, pathOrg }: AuthRequest, deps: AuthDeps): OrgCredential {
  const named = headers['x-org-id'];
  const org_id = pathOrg ?? (named === undefined ? undefined : String(named));
  if (org_id === undefined || org_id === '') throw new ApiError('invalid_request', 'X-Org-Id: is needed with a token');
  if (named !== undefined && named !== org_id)
    throw new ApiError('cross_org_access', "X-Org-Id is not the path's org.");
  const role = deps.memberships.roleOf(org_id, person.user_id);
  if (role === null) throw new ApiError('forbidden', 'The caller is no member of this org.');
  return { kind: 'user', org_id, user_id: person.user_id, email: person.email, role };
}

function checkPermission(
  permission: Permission,
  credential: OrgCredential,
  { resources = [] }: AuthRequest,
  deps: AuthDeps,
): void {
  if (may(credential, permission)) return;
  if (credential.kind === 'user') {
    const { org_id, user_id } = credential;
    if (resources.some((resource) => deps.grants.allows(org_id, user_id, resource, permission))) return;
    throw new ApiError('forbidden', `The role ${credential.role} lacks the permission ${permission}.`);
  }
  const { scope } = PERMISSIONS[permission];
  const { maker, scopes } = credential;
  if (maker !== undefined && keyMay(scopes, permission))
    throw new ApiError(
      'forbidden',
      `The API key belongs to a member whose role is now ${maker.role}, and that role lacks the permission ${permission}.`,
    );
  throw new ApiError(
    'forbidden',
    scope === null
      ? `The permission ${permission} is an owner's; no API key has it.`
      : `The API key lacks the scope ${scope} for the permission ${permission}.`,
  );
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
