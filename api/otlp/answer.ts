// Answers of the OTLP paths, in the encoding of the request: ExportTraceServiceResponse, or google.rpc.Status for an error. The
// contract's own error code and the request id stand in an ErrorInfo among its details.
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { encodeResponse, encodeStatus, ERROR_INFO_TYPE, type RpcStatus } from '../../schemas/otlp/messages.ts';
import { sendJson } from '../http/envelope.ts';
import type { ApiError } from '../http/errors.ts';
import { REQUEST_ID_HEADER } from '../http/request_id.ts';
import type { Encoding, ReadExport } from './events.ts';

/** google.rpc.Code by HTTP status. */
const RPC_CODE: Readonly<Record<number, number>> = { 401: 16, 402: 8, 403: 7, 405: 12, 409: 10, 413: 8, 429: 8, 502: 14, 503: 14 };
const INVALID_ARGUMENT = 3;
const INTERNAL = 13;
const ERROR_DOMAIN = 'millrace';

/** The HTTP status of an error here: what is no valid request is 400, as OTLP has it. */
export function statusOf(error: ApiError): number {
  return error.status === 422 ? 400 : error.status;
}

/** Sends what became of an export. */
export function sendTaken(res: ServerResponse, request_id: string, encoding: Encoding, { events, rejected, reasons }: ReadExport): void {
  const partial =
    rejected === 0
      ? null
      : {
          rejectedSpans: rejected,
          errorMessage: `${String(rejected)} of ${String(rejected + events.length)} spans were not taken. ${reasons.join('; ')}`,
        };
  if (encoding === 'protobuf') sendProtobuf(res, 200, request_id, encodeResponse(partial));
  // In JSON, numbers of 64 bits are texts.
  else
    sendJson(
      res,
      200,
      request_id,
      JSON.stringify(partial === null ? {} : { partialSuccess: { ...partial, rejectedSpans: String(partial.rejectedSpans) } }),
    );
}

/** Sends an error. An answer that has begun can only be broken off. */
export function sendStatus(res: ServerResponse, request_id: string, encoding: Encoding, error: ApiError): void {
  if (res.headersSent) {
    res.destroy();
    return;
  }
  const http = statusOf(error);
  const status: RpcStatus = {
    code: RPC_CODE[http] ?? (http >= 500 ? INTERNAL : INVALID_ARGUMENT),
    message: error.detail,
    reason: error.code,
    domain: ERROR_DOMAIN,
    metadata: { request_id },
  };
  if (encoding === 'protobuf') {
    sendProtobuf(res, http, request_id, encodeStatus(status), error.headers);
    return;
  }
  const { code, message, ...info } = status;
  sendJson(res, http, request_id, JSON.stringify({ code, message, details: [{ '@type': ERROR_INFO_TYPE, ...info }] }), error.headers);
}

function sendProtobuf(res: ServerResponse, status: number, request_id: string, body: Uint8Array, headers: OutgoingHttpHeaders = {}): void {
  if (res.headersSent || res.destroyed) return;
  res.writeHead(status, {
    'Content-Type': 'application/x-protobuf',
    'Content-Length': body.byteLength,
    [REQUEST_ID_HEADER]: request_id,
    ...headers,
  });
  res.end(body);
}
