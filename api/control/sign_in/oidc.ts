// The login at the identity provider: one route sends the browser to the provider, and one takes it back with a code
// and starts the session. What must be remembered in between is sealed into a cookie of ten minutes, so any process can
// answer the callback. A login that fails leads to the login page, which says why.
import type { ServerResponse } from 'node:http';
import { z } from 'zod';
import type { Sealer } from '../../../ops/platform/sealing.ts';
import { ApiError } from '../../http/errors.ts';
import { definePublicRoute, type Route, STREAMED } from '../../http/route.ts';
import { setSessionCookie } from '../../http/session_cookie.ts';
import { type Provider, ProviderFailed } from './provider.ts';

export interface OidcDeps {
  /** Null: the service is no client of a provider. */
  provider: Provider | null;
  sealer: Pick<Sealer, 'seal' | 'open'>;
  /** Returns a session token of the person until expires_at, seconds since the epoch. */
  sign: (person: { user_id: string; email: string | null }, expires_at: number) => Promise<string>;
  /** True if cookies are sent over https only. */
  secure: boolean;
  /** Milliseconds since the epoch. */
  now: () => number;
  /** Reports why a login failed, for the operator. */
  onProblem: (problem: string, cause: unknown) => void;
}

const TAG = 'Session';
const PATH = '/v1/session/oidc';
const COOKIE = 'svc_sign_in';
const CONTEXT = 'a login at the identity provider';
const ATTEMPT_S = 600;
/** Seconds that a session by provider lasts; the provider then logs the person in again, usually without asking. */
const SESSION_S = 12 * 3600;
const TO_CHARS_MAX = 2000;
/** Characters of a sealed attempt; a longer cookie is no attempt. */
const SEALED_CHARS_MAX = 6000;

const attemptShape = z.object({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  to: z.string(),
  expires_at: z.number(),
});

/** Why a login failed, as the address of the login page names it. */
type Refusal = 'denied' | 'expired' | 'failed';

export function oidcRoutes(deps: OidcDeps): Route[] {
  return [beginRoute(deps), callbackRoute(deps)];
}

function beginRoute(deps: OidcDeps): Route {
  return definePublicRoute({
    method: 'get',
    path: PATH,
    operation_id: 'beginSessionAtProvider',
    summary: 'Log in at the identity provider',
    description:
      'For browsers: redirects (302) to the login of the provider, with PKCE, state and nonce, and from there by the callback to `to`. Works where SERVICE_OIDC_CLIENT_ID is set; GET /v1/about then lists `oidc` in `login`.',
    tag: TAG,
    media: ['text/html'],
    query: z.object({
      to: z
        .string()
        .max(TO_CHARS_MAX)
        .optional()
        .describe('Path of this service that is opened after the login. Defaults to /'),
    }),
    response: z.string(),
    errors: ['not_found'],
    handler: async ({ query, res }) => {
      const { provider, sealer, now, onProblem } = deps;
      if (provider === null)
        throw new ApiError('not_found', 'This service has no login at an identity provider (SERVICE_OIDC_CLIENT_ID).');
      try {
        const { address, attempt } = await provider.begin();
        const expires_at = now() + ATTEMPT_S * 1000;
        const sealed = sealer.seal(JSON.stringify({ ...attempt, to: ownPath(query.to), expires_at }), CONTEXT);
        return redirect(res, address, [attemptCookie(sealed, deps, ATTEMPT_S)]);
      } catch (error) {
        if (!(error instanceof ProviderFailed)) throw error;
        onProblem('a login at the identity provider could not begin', error);
        return redirect(res, refusedAt('failed'), []);
      }
    },
  });
}

function callbackRoute(deps: OidcDeps): Route {
  return definePublicRoute({
    method: 'get',
    path: `${PATH}/callback`,
    operation_id: 'endSessionLoginAtProvider',
    summary: 'Take a login back from the identity provider',
    description: `The redirect URI of the client at the provider. Checks state and nonce, exchanges the code, sets the session cookie for ${SESSION_S / 3600} hours and redirects (302) to the path that was asked for first, or to the login page with the reason.`,
    tag: TAG,
    media: ['text/html'],
    any_query: true,
    query: z.object({ code: z.string().optional(), state: z.string().optional(), error: z.string().optional() }),
    response: z.string(),
    handler: async ({ query, req, res }) => {
      const clear = attemptCookie('', deps, 0);
      const attempt = attemptOf(req.headers.cookie ?? '', deps);
      if (attempt === null || query.state !== attempt.state) return redirect(res, refusedAt('expired'), [clear]);
      if (query.code === undefined || query.error !== undefined || deps.provider === null)
        return redirect(res, refusedAt('denied'), [clear]);
      try {
        const { user_id, email } = await deps.provider.finish(query.code, attempt);
        const expires_at = Math.floor(deps.now() / 1000) + SESSION_S;
        const token = await deps.sign({ user_id, email }, expires_at);
        const cookie = setSessionCookie(token, { maxAgeS: SESSION_S, secure: deps.secure });
        return redirect(res, attempt.to, [cookie, clear]);
      } catch (error) {
        if (!(error instanceof ProviderFailed) && !(error instanceof ApiError)) throw error;
        deps.onProblem('a login at the identity provider failed', error);
        return redirect(res, refusedAt('failed'), [clear]);
      }
    },
  });
}

const refusedAt = (refusal: Refusal): string => `/login?refused=${refusal}`;

function redirect(res: ServerResponse, location: string, cookies: string[]): typeof STREAMED {
  res.writeHead(302, { Location: location, 'Cache-Control': 'no-store', 'Set-Cookie': cookies });
  res.end();
  return STREAMED;
}

/**
 * Returns the cookie of an attempt. Lax, unlike the cookie of the session: the provider, which is another site, leads
 * the browser to the callback.
 */
function attemptCookie(value: string, { secure }: Pick<OidcDeps, 'secure'>, maxAgeS: number): string {
  return `${COOKIE}=${value}; Path=${PATH}; Max-Age=${maxAgeS}; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`;
}

/** Returns the attempt in the cookie; null for none, one that is too old, or one that this service did not seal. */
function attemptOf(cookies: string, { sealer, now }: OidcDeps): z.infer<typeof attemptShape> | null {
  const part = cookies.split(';').find((one) => one.trim().startsWith(`${COOKIE}=`));
  const sealed = part?.trim().slice(COOKIE.length + 1) ?? '';
  if (sealed === '' || sealed.length > SEALED_CHARS_MAX) return null;
  try {
    const attempt = attemptShape.parse(JSON.parse(sealer.open(sealed, CONTEXT)));
    return attempt.expires_at > now() ? attempt : null;
  } catch {
    return null;
  }
}

/** Returns the path if it is one of this service; else the first page. A text such as //other.example leads elsewhere. */
function ownPath(asked: string | undefined): string {
  const base = 'http://service.invalid';
  const url = asked?.startsWith('/') === true ? URL.parse(asked, base) : null;
  return url?.origin === base ? url.pathname + url.search : '/';
}
