// The operator's browser session: POST exchanges the operator token for a cookie, GET says when it ends, DELETE ends it.
import { z } from 'zod';
import { unauthenticated } from '../../http/auth.ts';
import {
  OPERATOR_COOKIE,
  OPERATOR_SESSION_S,
  operatorSessionEnd,
  setOperatorCookie,
  signOperatorSession,
} from '../../http/operator_session.ts';
import { defineOperatorRoute, definePublicRoute, type Route } from '../../http/route.ts';

export interface OperatorSessionDeps {
  /** The operator's token. */
  adminToken: string;
  /** True if the cookie is sent over https only. */
  secure: boolean;
  /** Milliseconds since the epoch. */
  now: () => number;
}

const TAG = 'Operator';
const PATH = '/admin/session';
/** Responses about a session are not cached. */
const NO_STORE = { 'Cache-Control': 'no-store' };

const operatorSession = z
  .object({
    expires_at: z.iso.datetime().nullable().describe('When the session ends. null for a request with the token itself'),
  })
  .meta({ id: 'OperatorSession' });

export function operatorSessionRoutes(deps: OperatorSessionDeps): Route[] {
  return [beginRoute(deps), getRoute(deps), endRoute(deps)];
}

function beginRoute({ adminToken, secure, now }: OperatorSessionDeps): Route {
  return defineOperatorRoute({
    method: 'post',
    path: PATH,
    operation_id: 'beginOperatorSession',
    summary: 'Start a session of the operator',
    description: `Takes the operator token as Authorization: Bearer and sets the cookie ${OPERATOR_COOKIE} (HttpOnly, SameSite=Strict, for paths below /admin) for ${OPERATOR_SESSION_S / 3600} hour. A session does not extend itself, and ends at once when the token changes. A request that changes something with the cookie needs Sec-Fetch-Site: same-origin, an Origin of this service, or X-Requested-With.`,
    tag: TAG,
    audit: null,
    status: 201,
    response: operatorSession,
    handler: ({ req }) => {
      if (req.headers.authorization === undefined)
        throw unauthenticated('A session of the operator begins with the operator token: Authorization: Bearer.');
      const expires_at = Math.floor(now() / 1000) + OPERATOR_SESSION_S;
      const cookie = setOperatorCookie(signOperatorSession(adminToken, expires_at), {
        maxAgeS: OPERATOR_SESSION_S,
        secure,
      });
      return { data: { expires_at: iso(expires_at) }, headers: { ...NO_STORE, 'Set-Cookie': cookie } };
    },
  });
}

function getRoute({ adminToken, now }: OperatorSessionDeps): Route {
  return defineOperatorRoute({
    method: 'get',
    path: PATH,
    operation_id: 'getOperatorSession',
    summary: "Get the operator's session",
    tag: TAG,
    response: operatorSession,
    handler: ({ req: { headers } }) => {
      const expires_at = headers.authorization === undefined ? operatorSessionEnd(headers, adminToken, now()) : null;
      return { data: { expires_at: expires_at === null ? null : iso(expires_at) }, headers: NO_STORE };
    },
  });
}

function endRoute({ secure }: OperatorSessionDeps): Route {
  return definePublicRoute({
    method: 'delete',
    path: PATH,
    operation_id: 'endOperatorSession',
    summary: "End the operator's session",
    description: 'Clears the cookie. Works with any cookie, including an expired one, and without one.',
    tag: TAG,
    audit: null,
    response: z.object({ id: z.literal(OPERATOR_COOKIE), deleted: z.literal(true) }),
    handler: () => ({
      data: { id: OPERATOR_COOKIE, deleted: true as const },
      headers: { ...NO_STORE, 'Set-Cookie': setOperatorCookie('', { maxAgeS: 0, secure }) },
    }),
  });
}

const iso = (seconds: number): string => new Date(seconds * 1000).toISOString();
