// The browser session: a person's token in an HttpOnly cookie. Browsers send a cookie with requests
// of any page, so a request that changes something must prove that it comes from a page of this
// origin.
import type { IncomingHttpHeaders } from 'node:http';
import { decodeProtectedHeader } from 'jose';
import { isLoopback } from '../../ops/platform/env.ts';
import { ApiError } from './errors.ts';

export const SESSION_COOKIE = 'svc_session' as const;
/** typ of the service's own session tokens (session_token.ts). */
export const SESSION_TOKEN_TYPE = 'svc-session+jwt';
/** header.payload.signature, each base64url. */
export const TOKEN_SHAPE = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*$/;

/**
 * Returns the token in the session cookie. Null without one; null for anything but a token, because
 * an API key in a cookie could be used by other sites; and null when several cookies differ,
 * because a neighbouring subdomain can set a cookie of this name too.
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

/** Returns true for a token whose header says that it is one of the service's own; nothing is verified. */
export function isSessionToken(token: string): boolean {
  try {
    return decodeProtectedHeader(token).typ === SESSION_TOKEN_TYPE;
  } catch {
    return false;
  }
}

/** Returns true if the request carries a session cookie, valid or not, and no other credential. */
export function isByCookie(headers: IncomingHttpHeaders): boolean {
  const { authorization, 'x-org-api-key': key } = headers;
  return authorization === undefined && key === undefined && sessionCookieOf(headers) !== null;
}

/** Returns true if a page of this service sent the request with its session cookie. */
export const isOfOwnPage = (headers: IncomingHttpHeaders): boolean =>
  headers['sec-fetch-site'] === 'same-origin' && isByCookie(headers);

/**
 * Rejects requests whose Host is not a name of this machine: a page of another site can make its own name lead to
 * 127.0.0.1 (DNS rebinding), and its requests then count as being of the same origin.
 * @throws ApiError forbidden
 */
export function checkLoopbackHost({ host }: IncomingHttpHeaders): void {
  if (isLoopback(URL.parse(`http://${host ?? ''}`)?.hostname ?? '')) return;
  throw new ApiError('forbidden', 'Host: must be a name of this machine: 127.0.0.1, localhost or [::1]');
}

/** Removes double quotes, which are not part of a cookie's value. */
function unquoted(value: string): string {
  return value.length >= 2 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;
}

/**
 * Returns the Set-Cookie header that begins a session, or ends it where maxAgeS is 0. No page reads
 * it (HttpOnly), and no other site makes a browser send it (SameSite=Strict).
 */
export function setSessionCookie(token: string, { maxAgeS, secure }: { maxAgeS: number; secure: boolean }): string {
  return `${SESSION_COOKIE}=${token}; Path=/; Max-Age=${maxAgeS}; HttpOnly; SameSite=Strict${secure ? '; Secure' : ''}`;
}

/**
 * Rejects requests that another site may have made a browser send. The proofs of OWASP's cheat
 * sheet on CSRF, the best first: Sec-Fetch-Site, which the browser itself sets and which passes any
 * proxy; an Origin of this host; a custom header, which no other site can send together with a
 * cookie, since no preflight here allows credentials (cors.ts). A navigation by hand
 * (Sec-Fetch-Site: none) may repeat what another site began, so it proves nothing. SameSite=Strict
 * alone is not enough: a neighbouring subdomain is the same site.
 * @throws ApiError forbidden
 */
export function checkSameSite(method: string, headers: IncomingHttpHeaders): void {
  if (method === 'GET' || method === 'HEAD' || provesOwnPage(headers)) return;
  throw new ApiError(
    'forbidden',
    "A request with a session that changes something must come from this service's origin: send Origin or X-Requested-With.",
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
 * Returns true if an Origin names the host that the client asked for: Host, or the host that a
 * proxy forwarded. A page of another site can set neither. Schemes are not compared: behind a proxy
 * that ends TLS the scheme is unknown here, and to a browser http and https of one host are two
 * sites.
 */
function isOwn(origin: string, headers: IncomingHttpHeaders): boolean {
  const from = URL.parse(origin);
  if (from === null || (from.protocol !== 'http:' && from.protocol !== 'https:')) return false;
  const forwarded = String(headers['x-forwarded-host'] ?? '').split(',')[0] ?? '';
  // Parsed as part of a URL of the same scheme, so that case and the scheme's default port make no
  // difference.
  return [headers.host ?? '', forwarded.trim()].some(
    (host) => host !== '' && URL.parse(`${from.protocol}//${host}`)?.host === from.host,
  );
}
