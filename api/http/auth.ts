// Authenticates and authorizes requests. API keys are looked up by their SHA-256 in memory and
// tokens are verified in this process; nothing here reads a store. An invalid, missing, expired or
// revoked credential is 401, another organization's 403, a missing permission 403 with its name.
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
import { operatorSessionEnd } from './operator_session.ts';
import { checkSameSite, isSessionToken, sessionCookieOf, TOKEN_SHAPE } from './session_cookie.ts';

/** Lookup of API keys. */
export interface KeyLookup {
  /** Returns the valid key whose raw text has this SHA-256 (lower-case hex); null without one. */
  byHash(sha256Hex: string): { hash: string; credential: OrgCredential } | null;
}

/** Verifies tokens of an identity provider. */
export interface TokenVerifier {
  /**
   * @param audience accepted besides the configured audience
   * @throws ApiError unauthenticated; upstream_unavailable when the provider's keys cannot be
   * fetched
   */
  verify(jwt: string, audience?: string): PersonCredential | Promise<PersonCredential>;
}

/** Lookup of members of organizations. */
export interface Memberships {
  /**
   * Returns the role of an active member; null where the user is no member, or the organization
   * does not exist.
   */
  roleOf(org_id: string, user_id: string): Role | null;
}

/** A thing that a grant can open to a member whose role alone does not. */
export interface Resource {
  type: 'trace' | 'agent' | 'judge' | 'dataset';
  id: string;
}

export interface GrantLookup {
  /** Returns true if an unexpired grant gives the user this permission on this resource. */
  allows(org_id: string, user_id: string, resource: Resource, permission: Permission): boolean;
}

export interface AuthDeps {
  keys: KeyLookup;
  tokens: TokenVerifier;
  /** Verifies the service's own session tokens. Unset: the service issues none. */
  sessions?: TokenVerifier | null;
  memberships: Memberships;
  grants: GrantLookup;
  /** The operator's token. */
  adminToken: string;
  /** Milliseconds since the epoch. */
  now: () => number;
}

/** The parts of a request that authorization looks at. */
export interface AuthRequest {
  method: string;
  headers: IncomingHttpHeaders;
  /** Organization that the path names; undefined without one. */
  pathOrg: string | undefined;
  /**
   * Resources that the request names and that a grant may cover; a grant on any of them admits the
   * caller.
   */
  resources?: readonly Resource[];
  /** Audience of a person's token that this endpoint accepts besides the configured one. */
  audience?: string | undefined;
}

export const KEY_PREFIX = 'sk_svc_';
const WWW_AUTHENTICATE = { 'WWW-Authenticate': 'Bearer realm="service"' };

/** Returns the SHA-256 of a raw key in lower-case hex, which is stored in its place. */
export const hashKey = (raw: string): string => hash('sha256', raw, 'hex');

export function unauthenticated(detail: string, cause?: unknown): ApiError {
  return new ApiError('unauthenticated', detail, { headers: WWW_AUTHENTICATE, cause });
}

/**
 * The scheme of a token. OTEL_EXPORTER_OTLP_HEADERS holds the space percent-encoded, and some exporters,
 * Claude Code's over HTTP among them, send the value without decoding it.
 */
const BEARER = /^bearer(?: |%20)/i;

/** Returns the Bearer token of the Authorization header; null without one. */
function bearerOf(headers: IncomingHttpHeaders): string | null {
  const given = headers.authorization;
  const scheme = given === undefined ? null : BEARER.exec(given);
  if (given === undefined || scheme === null || given.length === scheme[0].length) return null;
  return given.slice(scheme[0].length).trim();
}

/** Returns the raw credential of a request, whichever header carries it; null without one. */
export function rawCredentialOf(headers: IncomingHttpHeaders): string | null {
  const own = headers['x-org-api-key'];
  return own === undefined ? (bearerOf(headers) ?? sessionCookieOf(headers)) : String(own);
}

/**
 * Returns the caller of a route with this access.
 * @throws ApiError unauthenticated, forbidden, invalid_request
 */
export function authenticate(access: Access, request: AuthRequest, deps: AuthDeps): Credential | Promise<Credential> {
  if (access === 'public') return { kind: 'anonymous' };
  if (access === 'operator') return authenticateOperator(request, deps);
  if (access === 'person') return authenticatePerson(request, deps);
  return authenticateOrg(request, deps);
}

/**
 * Returns the caller of an organization's route: at once for an API key, later for a token that has
 * to be verified. Permissions are checked separately, so that an authenticated caller can be
 * charged to the rate limit first.
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
 * Checks that the caller has the permission of the route in the organization that the request
 * names.
 * @throws ApiError cross_org_access, forbidden
 */
export function permit(access: Access, credential: Credential, request: AuthRequest, deps: AuthDeps): void {
  // A caller authenticated for one of these may call every route with that access.
  if (access === 'public' || access === 'operator' || access === 'person' || !('org_id' in credential)) return;
  const { headers, pathOrg } = request;
  const named = headers['x-org-id'];
  if (named !== undefined && named !== credential.org_id)
    throw new ApiError('cross_org_access', "X-Org-Id is not the credential's organization.");
  if (pathOrg !== undefined && pathOrg !== credential.org_id)
    throw new ApiError('cross_org_access', "The path's organization is not the credential's.");
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
 * Authenticates the key in the query of a request, for pages that cannot set headers. The key must
 * have no scope but ingest:write, because URLs end up in histories, in logs of proxies and in the
 * source of pages.
 * @throws ApiError unauthenticated, forbidden
 */
export function authenticateQueryKey(raw: string, deps: AuthDeps): OrgCredential {
  const credential = keyOf(raw, deps);
  if (credential.kind === 'api_key' && credential.scopes.size === 1 && credential.scopes.has('ingest:write'))
    return credential;
  throw new ApiError(
    'forbidden',
    'api_key: must be a key whose only scope is ingest:write; send any other key in X-Org-Api-Key',
  );
}

/** Returns true if a header of the request holds a credential. */
export const hasCredentialHeader = ({ authorization, 'x-org-api-key': key }: IncomingHttpHeaders): boolean =>
  authorization !== undefined || key !== undefined;

/**
 * Authenticates a person by the token in the header or in the session cookie. With a cookie, a
 * request that changes something must come from this service's own origin.
 */
async function authenticatePerson(request: AuthRequest, deps: AuthDeps): Promise<PersonCredential> {
  const bearer = bearerOf(request.headers);
  const token = bearer ?? sessionCookieOf(request.headers);
  if (token === null || !TOKEN_SHAPE.test(token)) {
    const raw = rawCredentialOf(request.headers);
    if (raw !== null && deps.keys.byHash(hashKey(raw)) !== null)
      throw new ApiError('forbidden', "This endpoint requires a person's token, not an API key.");
    throw unauthenticated(
      token === null || token === ''
        ? 'A token is needed: Authorization: Bearer, or a session.'
        : 'The token is not valid.',
    );
  }
  const person = await verifierOf(token, bearer === null, deps).verify(token, request.audience);
  if (bearer === null) checkSameSite(request.method, request.headers);
  return person;
}

/** Returns the verifier of a token: one of the service's own counts in the session cookie only. */
function verifierOf(token: string, byCookie: boolean, { tokens, sessions }: AuthDeps): TokenVerifier {
  return byCookie && sessions != null && isSessionToken(token) ? sessions : tokens;
}

/**
 * Returns the person as a member of the organization that the request names. The role comes from
 * the member record, never from a claim of the token.
 */
function memberOf(person: PersonCredential, { headers, pathOrg }: AuthRequest, deps: AuthDeps): OrgCredential {
  const named = headers['x-org-id'];
  const org_id = pathOrg ?? (named === undefined ? undefined : String(named));
  if (org_id === undefined || org_id === '') throw new ApiError('invalid_request', 'X-Org-Id: is needed with a token');
  if (named !== undefined && named !== org_id)
    throw new ApiError('cross_org_access', "X-Org-Id is not the path's organization.");
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
      ? `The permission ${permission} belongs to owners; no API key has it.`
      : `The API key lacks the scope ${scope} for the permission ${permission}.`,
  );
}

/**
 * Checks the admin token in constant time, or the cookie that it was exchanged for. With the cookie, a request that
 * changes something must come from this service's own origin.
 * @throws ApiError unauthenticated; forbidden for a valid API key, since no scope opens these
 * routes
 */
function authenticateOperator({ method, headers }: AuthRequest, deps: AuthDeps): OperatorCredential {
  const token = bearerOf(headers);
  if (token !== null && token !== '') {
    // Digests have the same length, whatever the token.
    if (timingSafeEqual(Buffer.from(hashKey(token), 'latin1'), Buffer.from(hashKey(deps.adminToken), 'latin1')))
      return { kind: 'operator' };
  }
  if (token === null && operatorSessionEnd(headers, deps.adminToken, deps.now()) !== null) {
    checkSameSite(method, headers);
    return { kind: 'operator' };
  }
  const raw = rawCredentialOf(headers);
  if (raw !== null && deps.keys.byHash(hashKey(raw)) !== null)
    throw new ApiError('forbidden', 'This endpoint requires the operator token, not an API key.');
  throw unauthenticated('The operator token is needed: Authorization: Bearer, or a session of the operator.');
}
