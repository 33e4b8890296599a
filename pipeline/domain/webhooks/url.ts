// Validates the URLs of webhooks. Pure. The address that a name resolves to is checked at every
// connection, not here.
import { isIP } from 'node:net';
import { whyNotPublic } from './public_addresses.ts';

const URL_CHARS_MAX = 2048;
/** Receivers that may be reached without TLS in development. */
const LOCAL_HOSTS = new Set(['localhost', '127.0.0.1']);

/**
 * Returns the host of a URL as a resolver or a socket takes it: an IPv6 address without its
 * brackets, a name without its final dot.
 */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
}

/** Returns true when a name denotes this machine, whatever a resolver says (RFC 6761). */
export const isLocalName = (host: string): boolean => host === 'localhost' || host.endsWith('.localhost');

/**
 * Returns what is wrong with a webhook's URL, as the end of a sentence about it; null when it is
 * valid. Decimal, octal or hex spellings of an IPv4 address are that address.
 */
export function webhookUrlProblem(text: string, { development }: { development: boolean }): string | null {
  if (text.length > URL_CHARS_MAX) return `must have at most ${URL_CHARS_MAX} characters`;
  const url = URL.parse(text);
  if (url === null || text.trim() !== text || !/^https?:\/\//i.test(text)) return 'must be an https:// URL';
  const host = hostOf(url);
  if (url.protocol === 'http:' && !(development && LOCAL_HOSTS.has(host)))
    return development
      ? 'must be an https:// URL; http:// only for localhost and 127.0.0.1'
      : 'must be an https:// URL';
  if (url.username !== '' || url.password !== '') return 'must not contain a user or a password';
  if (text.includes('#')) return 'must not have a fragment';
  if (development) return null;
  if (isLocalName(host) || (isIP(host) !== 0 && whyNotPublic(host) !== null))
    return 'must be a host of the public Internet';
  return null;
}
