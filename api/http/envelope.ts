// The bodies of responses as JSON text: {data, meta} for a success, {detail, request_id, code} for
// an error.
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { z } from 'zod';
import { wellFormedJson } from '../../pipeline/domain/text/well_formed.ts';
import type { ApiError } from './errors.ts';
import { REQUEST_ID_HEADER } from './request_id.ts';

export const API_VERSION = '1.7.0';
const JSON_TYPE = 'application/json; charset=utf-8';

/** Meta of every successful response. */
export const baseMeta = z.object({
  api_version: z.literal(API_VERSION),
  request_id: z.string().describe('The same as the X-Request-Id header'),
  timestamp: z.iso.datetime().describe('Time of the response'),
  partial: z
    .boolean()
    .optional()
    .describe('true while a shard of the store is away: the answer to a read has what the other shards have'),
});

/** Returns the body of a successful response. */
export function envelope(data: unknown, requestId: string, nowMs: number, meta: Record<string, unknown> = {}): string {
  return JSON.stringify({
    data,
    meta: { api_version: API_VERSION, request_id: requestId, timestamp: new Date(nowMs).toISOString(), ...meta },
  });
}

/** Returns the headers of a JSON response, without those of its length. */
export const jsonHeaders = (requestId: string): Record<string, string> => ({
  'Content-Type': JSON_TYPE,
  [REQUEST_ID_HEADER]: requestId,
});

/** Returns the body of an error. */
function errorText(error: ApiError, requestId: string): string {
  return JSON.stringify({ detail: error.detail, request_id: requestId, code: error.code });
}

/**
 * Sends JSON text with X-Request-Id, replacing unpaired surrogates. Does nothing where the response
 * has begun.
 */
export function sendJson(
  res: ServerResponse,
  status: number,
  requestId: string,
  json: string,
  headers: OutgoingHttpHeaders = {},
): void {
  if (res.headersSent || res.destroyed) return;
  const body = wellFormedJson(json);
  res.writeHead(status, {
    ...jsonHeaders(requestId),
    'Content-Length': Buffer.byteLength(body),
    ...headers,
  });
  res.end(body);
}

/** Sends an error. Where the response has begun, the connection is closed instead. */
export function sendError(res: ServerResponse, error: ApiError, requestId: string): void {
  if (res.headersSent) {
    res.destroy();
    return;
  }
  sendJson(res, error.status, requestId, errorText(error, requestId), error.headers);
}
