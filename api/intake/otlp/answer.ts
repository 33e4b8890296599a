// Responses of the OTLP paths, in the encoding of the request: the response message of the signal, or
// google.rpc.Status for a body that is not OTLP, with the contract's error code and the request id
// in an ErrorInfo among its details. Other errors have the shape of every path.
import type { ServerResponse } from 'node:http';
import {
  encodeResponse,
  encodeStatus,
  ERROR_INFO_TYPE,
  type PartialSuccess,
  type RpcStatus,
} from '../../../schemas/otlp/messages.ts';
import { sendError, sendJson } from '../../http/envelope.ts';
import { ApiError } from '../../http/errors.ts';
import { REQUEST_ID_HEADER } from '../../http/request_id.ts';
import type { Encoding, ReadExport } from './events.ts';
import { SIGNALS } from './signals.ts';

/** google.rpc.Code of an invalid export. */
const INVALID_ARGUMENT = 3;
export const ERROR_DOMAIN = 'millrace';

/**
 * The body is not OTLP: 400 with a google.rpc.Status. Any other error, even with the same code, has
 * the shape of every path.
 */
export class InvalidOtlp extends ApiError {
  constructor(detail: string, cause: unknown) {
    super('invalid_request', detail, { cause });
  }
}

/** Returns the HTTP status of an error on an OTLP path. */
export function statusOf(error: ApiError): number {
  return error instanceof InvalidOtlp ? 400 : error.status;
}

/** Explains to the sender of metrics why nothing of them is stored. */
const METRICS_NOT_STORED =
  'Metrics are not stored. Tokens, cost and latency are computed from spans and log records; send those.';

/**
 * Returns the partial success of an export; null when every record was accepted. The answer to
 * metrics always says that they are not stored.
 */
export function partialSuccessOf({ signal, events, rejected, reasons }: ReadExport): PartialSuccess | null {
  if (signal === 'metrics') return { rejected, errorMessage: METRICS_NOT_STORED };
  if (rejected === 0) return null;
  const errorMessage = `${rejected} of ${rejected + events.length} ${SIGNALS[signal].records} were rejected. ${reasons.join('; ')}`;
  return { rejected, errorMessage };
}

/** Sends the response to an accepted export. */
export function sendAccepted(res: ServerResponse, request_id: string, encoding: Encoding, read: ReadExport): void {
  const partial = partialSuccessOf(read);
  if (encoding === 'protobuf') {
    sendProtobuf(res, 200, request_id, encodeResponse(partial));
    return;
  }
  // OTLP writes 64-bit numbers as strings in JSON.
  const partialSuccess =
    partial === null
      ? undefined
      : { [SIGNALS[read.signal].rejected]: String(partial.rejected), errorMessage: partial.errorMessage };
  sendJson(res, 200, request_id, JSON.stringify({ partialSuccess }));
}

/** Sends an error. Where the response has begun, the connection is closed instead. */
export function sendOtlpError(res: ServerResponse, request_id: string, encoding: Encoding, error: ApiError): void {
  if (res.headersSent) {
    res.destroy();
    return;
  }
  if (!(error instanceof InvalidOtlp)) {
    sendError(res, error, request_id);
    return;
  }
  const status: RpcStatus = {
    code: INVALID_ARGUMENT,
    message: error.detail,
    reason: error.code,
    domain: ERROR_DOMAIN,
    metadata: { request_id },
  };
  if (encoding === 'protobuf') {
    sendProtobuf(res, 400, request_id, encodeStatus(status));
    return;
  }
  const { code, message, ...info } = status;
  sendJson(
    res,
    400,
    request_id,
    JSON.stringify({ code, message, details: [{ '@type': ERROR_INFO_TYPE, ...info }] }),
    error.headers,
  );
}

function sendProtobuf(res: ServerResponse, status: number, request_id: string, body: Uint8Array): void {
  if (res.headersSent || res.destroyed) return;
  res.writeHead(status, {
    'Content-Type': 'application/x-protobuf',
    'Content-Length': body.byteLength,
    [REQUEST_ID_HEADER]: request_id,
  });
  res.end(body);
}
