// Answers of the OTLP paths, in the encoding of the request: ExportTraceServiceResponse, or google.rpc.Status for a body that is no OTLP, with
// the contract's own error code and the request id in an ErrorInfo among its details. Other errors are those of every path.
import type { ServerResponse } from 'node:http';
import { encodeResponse, encodeStatus, ERROR_INFO_TYPE, type RpcStatus } from '../../../schemas/otlp/messages.ts';
import { sendError, sendJson } from '../../http/envelope.ts';
import { ApiError } from '../../http/errors.ts';
import { REQUEST_ID_HEADER } from '../../http/request_id.ts';
import type { Encoding, ReadExport } from './events.ts';

/** google.rpc.Code: the export is no valid one. */
const INVALID_ARGUMENT = 3;
const ERROR_DOMAIN = 'millrace';

/** The body is no OTLP: 400 with a google.rpc.Status. Every other error, of the same code too, is answered as on any path. */
export class InvalidOtlp extends ApiError {
  constructor(detail: string, cause: unknown) {
    super('invalid_request', detail, { cause });
  }
}

/** The HTTP status of an error here. */
export function statusOf(error: ApiError): number {
  return error instanceof InvalidOtlp ? 400 : error.status;
}

/** Sends what became of an export. */
export function sendAccepted(
  res: ServerResponse,
  request_id: string,
  encoding: Encoding,
  { events, rejected, reasons }: ReadExport,
): void {
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
      JSON.stringify(
        partial === null ? {} : { partialSuccess: { ...partial, rejectedSpans: String(partial.rejectedSpans) } },
      ),
    );
}

/** Sends an error. An answer that has begun can only be broken off. */
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
