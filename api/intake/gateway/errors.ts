// Errors of the gateway's own in the shape that OpenAI's clients read: {error: {message, type, code, param}}, with the contract's
// code and its status. What an upstream says is never made into one of these.
import type { ServerResponse } from 'node:http';
import type { ApiError, ErrorCode } from '../../http/errors.ts';
import { wellFormedJson } from '../../../pipeline/domain/text/well_formed.ts';
import { REQUEST_ID_HEADER } from '../../http/request_id.ts';

/** Clients wait as long as Retry-After says up to here, and try again sooner beyond it: they are told not to. */
const RETRY_SECONDS_MAX = 60;

const TYPES: Readonly<Partial<Record<ErrorCode, string>>> = {
  unauthenticated: 'authentication_error',
  forbidden: 'permission_error',
  cross_org_access: 'permission_error',
  rate_limited: 'rate_limit_error',
  payment_required: 'insufficient_quota',
};

/** The field that a detail begins with ("messages: …"); null where it names none. */
const paramOf = (detail: string): string | null => /^([A-Za-z][\w.[\]-]*): /.exec(detail)?.[1] ?? null;

/** The body of an error. */
export function errorText({ code, detail, status }: ApiError): string {
  const type = TYPES[code] ?? (status >= 500 ? 'server_error' : 'invalid_request_error');
  return wellFormedJson(JSON.stringify({ error: { message: detail, type, code, param: paramOf(detail) } }));
}

/**
 * Sends an error.
 * @param headers names and values in turn: what goes on any answer to this request
 */
export function sendGatewayError(
  res: ServerResponse,
  error: ApiError,
  { request_id, headers }: { request_id: string; headers: readonly string[] },
): void {
  if (res.headersSent || res.destroyed) {
    res.destroy();
    return;
  }
  const body = errorText(error);
  const all: Record<string, string> = {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': String(Buffer.byteLength(body)),
  };
  for (let i = 0; i < headers.length; i += 2) all[headers[i] ?? ''] = headers[i + 1] ?? '';
  Object.assign(all, { [REQUEST_ID_HEADER]: request_id }, error.headers);
  if (Number(error.headers['Retry-After'] ?? 0) > RETRY_SECONDS_MAX) all['X-Should-Retry'] = 'false';
  res.writeHead(error.status, all);
  res.end(body);
}
