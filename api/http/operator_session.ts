// The operator's browser session: a cookie for /admin whose value proves that its holder knew the operator token. It is
// an expiry, random bytes and their HMAC under a key that is derived from the token, so a new token ends every session
// and nothing is stored. It is no bearer token, and requests outside of /admin do not carry it.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

export const OPERATOR_COOKIE = 'svc_operator' as const;
const PURPOSE = 'operator sessions';
const NONCE_BYTES = 16;
/** expiry in seconds since the epoch, random bytes, HMAC-SHA-256; the latter two base64url */
const VALUE = /^(\d{1,12})\.([A-Za-z0-9_-]{22})\.([A-Za-z0-9_-]{43})$/;
/** Seconds that a session lasts. */
export const OPERATOR_SESSION_S = 3600;

/**
 * Returns the value of a cookie that ends at expires_at.
 * @param expires_at seconds since the epoch
 */
export function signOperatorSession(adminToken: string, expires_at: number): string {
  const signed = `${expires_at}.${randomBytes(NONCE_BYTES).toString('base64url')}`;
  return `${signed}.${signatureOf(adminToken, signed)}`;
}

/**
 * Returns when the operator's session of a request ends, in seconds since the epoch. Null without a session, after its
 * end, and where several cookies differ: a neighbouring subdomain can set a cookie of this name too.
 * @param nowMs milliseconds since the epoch
 */
export function operatorSessionEnd(headers: IncomingHttpHeaders, adminToken: string, nowMs: number): number | null {
  const value = cookieOf(headers);
  const [, expiry = '', nonce = '', signature = ''] = VALUE.exec(value ?? '') ?? [];
  if (expiry === '') return null;
  const expected = Buffer.from(signatureOf(adminToken, `${expiry}.${nonce}`), 'latin1');
  if (!timingSafeEqual(Buffer.from(signature, 'latin1'), expected)) return null;
  const expires_at = Number(expiry);
  return expires_at * 1000 > nowMs ? expires_at : null;
}

/** Returns true if the request carries an operator's cookie, valid or not. */
export const hasOperatorCookie = (headers: IncomingHttpHeaders): boolean => cookieOf(headers) !== null;

/** Returns the Set-Cookie header that begins a session, or ends it where maxAgeS is 0. */
export function setOperatorCookie(value: string, { maxAgeS, secure }: { maxAgeS: number; secure: boolean }): string {
  return `${OPERATOR_COOKIE}=${value}; Path=/admin; Max-Age=${maxAgeS}; HttpOnly; SameSite=Strict${secure ? '; Secure' : ''}`;
}

function cookieOf(headers: IncomingHttpHeaders): string | null {
  const found = new Set<string>();
  for (const part of (headers.cookie ?? '').split(';')) {
    const at = part.indexOf('=');
    if (at > 0 && part.slice(0, at).trim() === OPERATOR_COOKIE) found.add(part.slice(at + 1).trim());
  }
  const [value] = found;
  return found.size === 1 && value !== undefined ? value : null;
}

const signatureOf = (adminToken: string, signed: string): string =>
  createHmac('sha256', adminToken).update(`${PURPOSE}\n${signed}`).digest('base64url');
