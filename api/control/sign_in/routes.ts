// Routes of a browser session: start, get, end. The token of a person is put into an HttpOnly
// cookie, which no script of a page can read. The service stores nothing: the session ends with the
// token, or with the cookie if that expires sooner.
import type { z } from 'zod';
import { rawCredentialOf, unauthenticated } from '../../http/auth.ts';
import type { PersonCredential } from '../../http/credential.ts';
import type { Role } from '../../http/permissions.ts';
import { definePersonRoute, definePublicRoute, type Route } from '../../http/route.ts';
import { SESSION_COOKIE, setSessionCookie } from '../../http/session_cookie.ts';
import { endedSession, session } from './schema.ts';

export interface SessionDeps {
  /** Organizations of which the user is an active member. */
  orgsOf: (user_id: string) => readonly { org_id: string; name: string; role: Role }[];
  /** True if the cookie is sent over https only. */
  secure: boolean;
  /** Milliseconds since the epoch. */
  now: () => number;
}

const TAG = 'Session';
const PATH = '/v1/session';
/** Seconds that the cookie lasts if the token has no expiry. */
const ENDLESS_S_MAX = 12 * 3600;
/** Responses that name a person are not cached. */
const NO_STORE = { 'Cache-Control': 'no-store' };

export function sessionRoutes(deps: SessionDeps): Route[] {
  return [beginSessionRoute(deps), getSessionRoute(deps), endSessionRoute(deps)];
}

function beginSessionRoute({ orgsOf, secure, now }: SessionDeps): Route {
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
      // The person was not authenticated by an API key that the request also carries.
      const token = rawCredentialOf({ ...req.headers, 'x-org-api-key': undefined });
      if (token === null) throw unauthenticated('A token is needed: Authorization: Bearer, or a session.');
      // A token that has just expired, within the accepted clock skew, gets a second. A Max-Age of
      // 0 would end the session that this request starts.
      const nowS = now() / 1000;
      const expires_at = credential.expires_at ?? Math.floor(nowS) + ENDLESS_S_MAX;
      const maxAgeS = Math.max(1, Math.floor(expires_at - nowS));
      return {
        data: sessionOf({ ...credential, expires_at }, orgsOf),
        headers: { ...NO_STORE, 'Set-Cookie': setSessionCookie(token, { maxAgeS, secure }) },
      };
    },
  });
}

function getSessionRoute({ orgsOf }: SessionDeps): Route {
  return definePersonRoute({
    method: 'get',
    path: PATH,
    operation_id: 'getSession',
    summary: 'Get the current session',
    description: 'Returns the caller and the organizations of which they are an active member.',
    tag: TAG,
    response: session,
    handler: ({ credential }) => ({ data: sessionOf(credential, orgsOf), headers: NO_STORE }),
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

function sessionOf(
  { user_id, email, expires_at }: PersonCredential,
  orgsOf: SessionDeps['orgsOf'],
): z.input<typeof session> {
  return {
    user_id,
    email,
    expires_at: expires_at === null ? null : new Date(expires_at * 1000).toISOString(),
    orgs: orgsOf(user_id).map(({ org_id, name, role }) => ({ org_id, name, role })),
  };
}
