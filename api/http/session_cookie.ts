// The session of a browser: the token of a person in an HttpOnly cookie. A browser sends a cookie whoever made the page, so
// what changes something must show that it comes from a page of this very origin.
import type { IncomingHttpHeaders } from 'node:http';
import { ApiError } from './errors.ts';

export const SESSION_COOKIE = 'svc_session' as const;
/** header.payload.signature, each base64url. */
export const TOKEN_SHAPE = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*$/;

/**
 * The token in the session cookie. Null without one, when the cookie holds anything but a token (an API key is never taken
 * from a cookie: nothing would keep other sites from using it), and when several differ: a neighbouring subdomain can set a
 * cookie of this name too, and nobody can tell which is the user's.
 */
export function sessionCookieOf(headers: IncomingHttpHeaders): string | null {
  const found = new Set<string>();
  for (const part of (headers.cookie ?? '').split(';')) {
    const at = part.indexOf('=');
    if (at > 0 && part.slice(0, at).trim() === SESSION_COOKIE) found.add(unquoted(part.slice(at + 1).trim()));
  }
  const [token] = found;
  return found.size === 1 && token !== undefined && TOKEN_SHAPE.test(token) ? token : null;
}

/** A cookie's value may stand in double quotes, which are no part of it. */
function unquoted(value: string): string {
  return value.length >= 2 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;
}

/**
 * The Set-Cookie header that begins a session, or ends it where maxAgeS is 0. A page never reads it (HttpOnly), and no other
 * site makes a browser send it (SameSite=Strict).
 */
export function setSessionCookie(token: string, { maxAgeS, secure }: { maxAgeS: number; secure: boolean }): string {
  return `${SESSION_COOKIE}=${token}; Path=/; Max-Age=${String(maxAgeS)}; HttpOnly; SameSite=Strict${secure ? '; Secure' : ''}`;
}

/**
 * Refuses what another site may have made a browser send. Proofs, as OWASP's cheat sheet on CSRF lists them, the best first:
 * Sec-Fetch-Site, which is the browser's own word and holds behind any proxy; an Origin of our own host; a custom header,
 * which no other site can set together with a cookie, since no preflight here allows credentials (cors.ts). What a person does by hand (Sec-Fetch-Site: none)
 * may repeat what another site began, so it proves nothing. SameSite=Strict alone does not do: a neighbouring subdomain is the
 * same site.
 * @throws ApiError forbidden
 */
export function checkSameSite(method: string, headers: IncomingHttpHeaders): void {
  if (method === 'GET' || method === 'HEAD' || provesOwnPage(headers)) return;
  throw new ApiError(
    'forbidden',
    'A session that changes something must come from our own origin: send Origin or X-Requested-With.',
  );
}

function provesOwnPage(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site'];
  if (site === 'same-origin') return true;
  if (site !== undefined && site !== 'none') return false;
  const { origin } = headers;
  return origin === undefined ? headers['x-requested-with'] !== undefined : isOwn(origin, headers);
}

/**
 * Whether an Origin names the host that the client asked for: Host, or what a proxy in between noted of it. A page of another
 * site can set neither. Schemes are not compared: behind a proxy that ends TLS, ours is not known here, and to a browser
 * http and https of one host are two sites.
 */
function isOwn(origin: string, headers: IncomingHttpHeaders): boolean {
  const from = URL.parse(origin);
  if (from === null || (from.protocol !== 'http:' && from.protocol !== 'https:')) return false;
  const forwarded = String(headers['x-forwarded-host'] ?? '').split(',')[0] ?? '';
  // Read as a part of a URL of the same scheme, so that case and the scheme's own port make no difference.
  return [headers.host ?? '', forwarded.trim()].some(
    (host) => host !== '' && URL.parse(`${from.protocol}//${host}`)?.host === from.host,
  );
}
