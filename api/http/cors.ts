// Cross-origin requests of browsers. Some paths accept pages of any origin, all others only the
// origins that the operator lists. Takes a request and its response before any other code; sets the
// CORS headers on the response, or answers a preflight. No page is ever allowed credentials, so no
// session cookie crosses origins.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { newRequestId, REQUEST_ID_HEADER } from './request_id.ts';

export interface CorsRules {
  /** Origins that may call every path, exactly as browsers write them. */
  origins: readonly string[];
  /** Returns true for requests that pages of any origin may send. */
  isOpen: (method: string, url: string) => boolean;
}

/** Seconds for which a browser may cache a preflight; Chromium caches none for longer. */
const MAX_AGE_SECONDS = 7200;
const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE';
const OPEN_METHODS = 'POST';

/**
 * The wildcard covers every header but Authorization. The others are listed for readers, and for
 * browsers without the wildcard.
 */
const REQUEST_HEADERS = [
  'Authorization',
  'Content-Type',
  'Content-Encoding',
  'Idempotency-Key',
  'X-Org-Api-Key',
  'X-Org-Id',
  'X-Service-Api-Version',
  'X-Service-Backfill',
  'X-Service-Trace-Id',
  'X-Service-Parent-Span-Id',
  'X-Service-Agent-Id',
  'X-Service-Session-Id',
  'X-Service-User-Id',
  'X-Service-Tags',
  'X-Service-Prompt-Name',
  'X-Service-Prompt-Version',
  'X-Service-Prompt-Variables',
  'X-Service-Cache',
  'traceparent',
  'tracestate',
  'baggage',
  '*',
].join(', ');

const ANSWER_HEADERS = [
  'X-Request-Id',
  'Retry-After',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'Idempotency-Replayed',
  'X-Service-Trace-Id',
  'X-Service-Span-Id',
  'X-Service-Cache',
  'X-Quota-Tokens-Status',
  'X-Should-Retry',
  'Deprecation',
  'Sunset',
  '*',
].join(', ');

/**
 * Returns a function that sets the CORS headers of a response. It answers preflights of allowed
 * origins itself and then returns true: browsers send no credentials with them, so they come before
 * authentication.
 */
export function createCors({ origins, isOpen }: CorsRules): (req: IncomingMessage, res: ServerResponse) => boolean {
  const listed = new Set(origins);
  return (req, res) => {
    const { origin } = req.headers;
    if (origin === undefined) {
      // A cache must not serve this response, which has no CORS headers, to a page of a listed
      // origin.
      if (listed.size > 0 && (req.method === 'GET' || req.method === 'HEAD')) res.setHeader('Vary', 'Origin');
      return false;
    }
    const asked = req.headers['access-control-request-method'];
    const isPreflight = req.method === 'OPTIONS' && asked !== undefined;
    const open = isOpen((isPreflight ? asked : req.method) ?? '', req.url ?? '');
    if (open || listed.size > 0)
      res.setHeader(
        'Vary',
        isPreflight ? 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers' : 'Origin',
      );
    if (!open && !listed.has(origin)) return false;
    res.setHeader('Access-Control-Allow-Origin', open ? '*' : origin);
    if (!isPreflight) {
      res.setHeader('Access-Control-Expose-Headers', ANSWER_HEADERS);
      return false;
    }
    res.writeHead(204, {
      'Access-Control-Allow-Methods': open ? OPEN_METHODS : METHODS,
      'Access-Control-Allow-Headers': REQUEST_HEADERS,
      'Access-Control-Max-Age': MAX_AGE_SECONDS,
      [REQUEST_ID_HEADER]: newRequestId(),
    });
    res.end();
    return true;
  };
}
