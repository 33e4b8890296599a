// The shapes of answers: {data, meta} for a success, {detail, request_id, code} for an error, as text ready to send.
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { z } from 'zod';
import { wellFormedJson } from '../../pipeline/domain/text/well_formed.ts';
import type { ApiError } from './errors.ts';
import { REQUEST_ID_HEADER } from './request_id.ts';

export const API_VERSION = '1.7.0';
const JSON_TYPE = 'application/json; charset=utf-8';

/** Meta of every success. */
export const baseMeta = z.object({
  api_version: z.literal(API_VERSION),
  request_id: z.string().describe('The same as the X-Request-Id header'),
  timestamp: z.iso.datetime().describe('When the answer was made'),
});

/** Body of a success. */
export function envelope(data: unknown, requestId: string, nowMs: number, meta: Record<string, unknown> = {}): string {
  return JSON.stringify({
    data,
    meta: { api_version: API_VERSION, request_id: requestId, timestamp: new Date(nowMs).toISOString(), ...meta },
  });
}

/** Body of an error. */
function errorText(error: ApiError, requestId: string): string {
  return JSON.stringify({ detail: error.detail, request_id: requestId, code: error.code });
}

/**
 * Sends a JSON text, without the unpaired surrogates that it may hold. X-Request-Id goes on every answer; a response that has begun
 * is left alone.
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
    'Content-Type': JSON_TYPE,
    'Content-Length': Buffer.byteLength(body),
    [REQUEST_ID_HEADER]: requestId,
    ...headers,
  });
  res.end(body);
}

/** Sends an error; one that comes after the answer has begun can only break the connection off. */
export function sendError(res: ServerResponse, error: ApiError, requestId: string): void {
  if (res.headersSent) {
    res.destroy();
    return;
  }
  sendJson(res, error.status, requestId, errorText(error, requestId), error.headers);
}
