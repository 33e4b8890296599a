// Routes of a browser session: start, get, end. The token of a person is put into an HttpOnly
// cookie, which no script of a page can read. The service stores nothing: the session ends with the
// token, or with the cookie if that expires sooner. On a local service a login ticket starts a
// session too; its token is the service's own.
import type { z } from 'zod';
import { rawCredentialOf, unauthenticated } from '../../http/auth.ts';
import type { PersonCredential } from '../../http/credential.ts';
import { ApiError } from '../../http/errors.ts';
import { type Permission, PERMISSIONS, type Role, roleMay } from '../../http/permissions.ts';
import { definePersonRoute, definePublicRoute, type Route } from '../../http/route.ts';
import { checkLoopbackHost, checkSameSite, SESSION_COOKIE, setSessionCookie } from '../../http/session_cookie.ts';
import type { GrantRecord } from '../../../schemas/records/grant.ts';
import { about, endedSession, session, ticketBody } from './schema.ts';

/** Login by ticket, on a local service. */
export interface LocalLogin {
  /**
   * Uses a ticket up.
   * @returns the user whom it logs in; null for a ticket that is unknown, used or expired
   */
  spend: (ticket: string) => Promise<string | null>;
  /** Returns a session token of the user until expires_at, seconds since the epoch. */
  sign: (user_id: string, expires_at: number) => Promise<string>;
}

export interface SessionDeps {
  /** Null: no tickets log in. */
  local: LocalLogin | null;
  /** Organizations of which the user is an active member. */
  orgsOf: (user_id: string) => readonly { org_id: string; name: string; role: Role }[];
  /** Valid grants of the user in an organization, newest first. */
  grantsOf: (org_id: string, user_id: string) => readonly GrantRecord[];
  /** Response of GET /v1/about. */
  about: z.input<typeof about>;
  /** True if the cookie is sent over https only. */
  secure: boolean;
  /** Milliseconds since the epoch. */
  now: () => number;
}

const TAG = 'Session';
const PATH = '/v1/session';
/** Seconds that the cookie lasts if the token has no expiry. */
const ENDLESS_S_MAX = 12 * 3600;
/** Seconds that a session by ticket lasts. */
const TICKET_SESSION_S = 30 * 24 * 3600;
/** Responses that name a person are not cached. */
const NO_STORE = { 'Cache-Control': 'no-store' };

export function sessionRoutes(deps: SessionDeps): Route[] {
  return [beginSessionRoute(deps), ticketRoute(deps), getSessionRoute(deps), endSessionRoute(deps), aboutRoute(deps)];
}

function beginSessionRoute(deps: SessionDeps): Route {
  return definePersonRoute({
    method: 'post',
    path: PATH,
    operation_id: 'beginSession',
    summary: 'Start a session',
    description: `Sets the cookie ${SESSION_COOKIE} (HttpOnly, SameSite=Strict) to the token of the request. The session ends with the token, or after ${ENDLESS_S_MAX / 3600} hours if the token has no expiry. A request that changes something with the cookie needs Sec-Fetch-Site: same-origin, an Origin of this service, or X-Requested-With.`,
    tag: TAG,
    audit: null,
    status: 201,
    response: session,
    handler: ({ credential, req }) => {
      const { secure, now } = deps;
      // The person was not authenticated by an API key that the request also carries.
      const token = rawCredentialOf({ ...req.headers, 'x-org-api-key': undefined });
      if (token === null) throw unauthenticated('A token is needed: Authorization: Bearer, or a session.');
      // A token that has just expired, within the accepted clock skew, gets a second. A Max-Age of
      // 0 would end the session that this request starts.
      const nowS = now() / 1000;
      const expires_at = credential.expires_at ?? Math.floor(nowS) + ENDLESS_S_MAX;
      const maxAgeS = Math.max(1, Math.floor(expires_at - nowS));
      return {
        data: sessionOf({ ...credential, expires_at }, deps),
        headers: { ...NO_STORE, 'Set-Cookie': setSessionCookie(token, { maxAgeS, secure }) },
      };
    },
  });
}

function ticketRoute(deps: SessionDeps): Route {
  return definePublicRoute({
    method: 'post',
    path: `${PATH}/ticket`,
    operation_id: 'beginSessionByTicket',
    summary: 'Start a session with a login link',
    description: `Takes the ticket of a link that \`npm start\` or \`npm run login\` printed and sets the cookie ${SESSION_COOKIE} for ${TICKET_SESSION_S / 86_400} days. A ticket logs in once, within 10 minutes. Works in development without \`SERVICE_JWT_JWKS_URL\`, for pages of this service, at an address of this machine.`,
    tag: TAG,
    audit: null,
    status: 201,
    errors: ['unauthenticated', 'forbidden', 'invalid_request', 'upstream_unavailable'],
    body: ticketBody,
    response: session,
    handler: async ({ body, req }) => {
      const { local, secure, now } = deps;
      if (local === null)
        throw new ApiError('forbidden', 'This service has no login links; send a token to POST /v1/session.');
      checkLoopbackHost(req.headers);
      checkSameSite('POST', req.headers);
      const user_id = await local.spend(body.ticket);
      if (user_id === null)
        throw unauthenticated(
          'The login link was used or is older than 10 minutes. `npm run login` prints another one.',
        );
      const expires_at = Math.floor(now() / 1000) + TICKET_SESSION_S;
      const token = await local.sign(user_id, expires_at);
      const cookie = setSessionCookie(token, { maxAgeS: TICKET_SESSION_S, secure });
      return {
        data: sessionOf({ kind: 'person', user_id, email: null, expires_at }, deps),
        headers: { ...NO_STORE, 'Set-Cookie': cookie },
      };
    },
  });
}

function getSessionRoute(deps: SessionDeps): Route {
  return definePersonRoute({
    method: 'get',
    path: PATH,
    operation_id: 'getSession',
    summary: 'Get the current session',
    description:
      'Returns the caller and the organizations of which they are an active member, with their permissions in each.',
    tag: TAG,
    response: session,
    handler: ({ credential }) => ({ data: sessionOf(credential, deps), headers: NO_STORE }),
  });
}

function endSessionRoute({ secure }: SessionDeps): Route {
  return definePublicRoute({
    method: 'delete',
    path: PATH,
    operation_id: 'endSession',
    summary: 'End a session',
    description:
      'Clears the cookie. Works with any cookie, including an expired one. Copies of the token stay valid until the token expires.',
    tag: TAG,
    audit: null,
    response: endedSession,
    handler: () => ({
      data: { id: SESSION_COOKIE, deleted: true as const },
      headers: { ...NO_STORE, 'Set-Cookie': setSessionCookie('', { maxAgeS: 0, secure }) },
    }),
  });
}

function aboutRoute(deps: SessionDeps): Route {
  return definePublicRoute({
    method: 'get',
    path: '/v1/about',
    operation_id: 'getAbout',
    summary: 'Get what this service is and which parts are configured',
    tag: TAG,
    response: about,
    handler: () => ({ data: deps.about }),
  });
}

const NAMES = Object.keys(PERMISSIONS) as Permission[];

function sessionOf(
  { user_id, email, expires_at }: PersonCredential,
  { orgsOf, grantsOf }: Pick<SessionDeps, 'orgsOf' | 'grantsOf'>,
): z.input<typeof session> {
  return {
    user_id,
    email,
    expires_at: expires_at === null ? null : new Date(expires_at * 1000).toISOString(),
    orgs: orgsOf(user_id).map(({ org_id, name, role }) => ({
      org_id,
      name,
      role,
      permissions: NAMES.filter((permission) => roleMay(role, permission)),
      grants: grantsOf(org_id, user_id).map(({ grant_id, resource, permissions, expires_at: until }) => ({
        grant_id,
        resource,
        permissions,
        expires_at: until,
      })),
    })),
  };
}
