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

/** Returns the Content-Security-Policy of a page that may use one inline style and one inline script, and may load nothing. */
export function inlinePagePolicy(style: string, script: string): string {
  const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
  return `${POLICY}; style-src ${hashOf(style)}; script-src ${hashOf(script)}`;
}
