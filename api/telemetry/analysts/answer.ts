// Writes errors of the service in the style of ClickHouse, which its clients understand.
import type { ServerResponse } from 'node:http';
import type { Refusal } from './check.ts';

/**
 * HTTP statuses that ClickHouse uses for its exception codes
 * (src/Server/HTTP/exceptionCodeToHTTPStatus.cpp); any other code is a 400.
 */
const STATUS_OF: Readonly<Record<number, number>> = {
  // UNKNOWN_DATABASE
  81: 404,
  // TIMEOUT_EXCEEDED
  159: 408,
  // READONLY
  164: 403,
  // QUOTA_EXCEEDED
  201: 429,
  // TOO_MANY_SIMULTANEOUS_QUERIES
  202: 503,
  // QUERY_IS_TOO_LARGE
  223: 413,
  // NETWORK_ERROR: the engine is unavailable, or cannot be shown to confine analysts
  210: 503,
  // ACCESS_DENIED
  497: 403,
  // AUTHENTICATION_FAILED
  516: 403,
};

/** Returns the HTTP status of a refusal. */
export const statusOf = ({ code }: Pick<Refusal, 'code'>): number => STATUS_OF[code] ?? 400;

export function sendRefusal(
  res: ServerResponse,
  { code, type, message }: Refusal,
  headers: Record<string, string> = {},
): void {
  const body = `Code: ${code}. DB::Exception: ${message}. (${type}) (version 1.0 (Millrace))\n`;
  res.writeHead(statusOf({ code }), {
    'Content-Type': 'text/plain; charset=UTF-8',
    'Content-Length': Buffer.byteLength(body),
    'X-ClickHouse-Exception-Code': String(code),
    ...headers,
  });
  res.end(body);
}
