// Headers on every answer of every HTTP port of the service, errors included: a browser that is led to an answer runs nothing of it,
// shows it in no frame, takes it for no other type, and sends its address nowhere.
import { createHash } from 'node:crypto';

const POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Names and values. What answers with a page sets a Content-Security-Policy of its own in place of this one. */
export const SECURITY_HEADERS: readonly (readonly [name: string, value: string])[] = [
  ['Content-Security-Policy', POLICY],
  ['X-Content-Type-Options', 'nosniff'],
  ['X-Frame-Options', 'DENY'],
  ['Referrer-Policy', 'no-referrer'],
];

/** Returns the Content-Security-Policy of a page with one inline style, named by its hash, and nothing else that is loaded or run. */
export function styledPagePolicy(style: string): string {
  return `${POLICY}; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`;
}
