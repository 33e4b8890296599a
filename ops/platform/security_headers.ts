// Security headers for every answer of every HTTP port of the service, including errors: a browser
// that is led to an answer runs none of it, shows it in no frame, guesses no other type, and sends
// its address nowhere.
import { createHash } from 'node:crypto';

const POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Names and values. An answer that is a page replaces this Content-Security-Policy by its own. */
export const SECURITY_HEADERS: readonly (readonly [name: string, value: string])[] = [
  ['Content-Security-Policy', POLICY],
  ['X-Content-Type-Options', 'nosniff'],
  ['X-Frame-Options', 'DENY'],
  ['Referrer-Policy', 'no-referrer'],
];

/**
 * Returns the Content-Security-Policy of a page with one inline style and one inline script, named
 * by their hashes, that loads and runs nothing else.
 */
export function inlinePagePolicy(style: string, script: string): string {
  const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
  return `${POLICY}; style-src ${hashOf(style)}; script-src ${hashOf(script)}`;
}
