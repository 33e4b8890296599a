// Errors of the gateway itself in the shape that the caller's client reads, with the contract's
// status: {error: {message, type, code, param}} for OpenAI's, {type: "error", error: {type, message},
// request_id} for Anthropic's. Errors of an upstream pass unchanged.
import type { ServerResponse } from 'node:http';
import type { ApiError, ErrorCode } from '../../http/errors.ts';
import { wellFormedJson } from '../../../pipeline/domain/text/well_formed.ts';
import { REQUEST_ID_HEADER } from '../../http/request_id.ts';
import type { GatewayApi } from '../../../ops/platform/llm/routes.ts';

/**
 * SDKs honour Retry-After only up to this many seconds and retry early beyond it, so longer waits
 * also send `X-Should-Retry: false`.
 */
const RETRY_SECONDS_MAX = 60;

const TYPES: Readonly<Partial<Record<ErrorCode, string>>> = {
  unauthenticated: 'authentication_error',
  forbidden: 'permission_error',
  cross_org_access: 'permission_error',
  rate_limited: 'rate_limit_error',
  payment_required: 'insufficient_quota',
};

const ANTHROPIC_TYPES: Readonly<Partial<Record<number, string>>> = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
};

/** Returns the field that a detail begins with ("messages: …"); null where it names none. */
const paramOf = (detail: string): string | null => /^([A-Za-z][\w.[\]-]*): /.exec(detail)?.[1] ?? null;

/** Returns the body of an error. */
function errorText({ code, detail, status }: ApiError, api: GatewayApi, request_id: string): string {
  if (api === 'anthropic') {
    const kind = ANTHROPIC_TYPES[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error');
    return wellFormedJson(JSON.stringify({ type: 'error', error: { type: kind, message: detail }, request_id }));
  }
  const type = TYPES[code] ?? (status >= 500 ? 'server_error' : 'invalid_request_error');
  return wellFormedJson(JSON.stringify({ error: { message: detail, type, code, param: paramOf(detail) } }));
}

/**
 * Sends an error.
 * @param headers headers of any response to this request, names and values in turn
 */
export function sendGatewayError(
  res: ServerResponse,
  error: ApiError,
  { api, request_id, headers }: { api: GatewayApi; request_id: string; headers: readonly string[] },
): void {
  if (res.headersSent || res.destroyed) {
    res.destroy();
    return;
  }
  const body = errorText(error, api, request_id);
  const all: Record<string, string> = {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': String(Buffer.byteLength(body)),
  };
  for (let i = 0; i < headers.length; i += 2) all[headers[i] ?? ''] = headers[i + 1] ?? '';
  Object.assign(all, { [REQUEST_ID_HEADER]: request_id }, error.headers);
  // Anthropic's clients report the id in this header.
  if (api === 'anthropic') all['Request-Id'] = request_id;
  if (Number(error.headers['Retry-After'] ?? 0) > RETRY_SECONDS_MAX) all['X-Should-Retry'] = 'false';
  res.writeHead(error.status, all);
  res.end(body);
}
