// Serves OTLP over gRPC: the unary method Export of the trace, logs and metrics services, on a port
// of its own, with node:http2. The same reader, admission and bounds as over HTTP; the status of an
// error is in the trailers, with the code of the contract in an ErrorInfo and, where the caller may
// try again, the seconds in a RetryInfo. Connections are plain text; a proxy in front ends TLS.
import {
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import { encodeResponse, encodeStatus } from '../../../schemas/otlp/messages.ts';
import { type ApiError, toApiError } from '../../http/errors.ts';
import { newRequestId, REQUEST_ID_HEADER } from '../../http/request_id.ts';
import { type Accepted, acceptExport } from './accept.ts';
import { ERROR_DOMAIN, partialSuccessOf, statusOf } from './answer.ts';
import { type GrpcStatus, readMessage, sendMessage, sendStatus, Unimplemented } from './grpc_frames.ts';
import type { OtlpDeps } from './handler.ts';
import type { Signal } from './signals.ts';

/** Maximum number of calls at a time on one connection. */
const STREAMS_MAX = 100;
/** Maximum memory that node:http2 uses for one connection, in megabytes. */
const SESSION_MEMORY_MB_MAX = 32;
/** Maximum number of connections of one process. Further ones are closed as they arrive. */
const SESSIONS_MAX = 2000;
/** A call that has not ended after this time is cancelled, as over HTTP. */
const CALL_MS_MAX = 120_000;
/** A connection without a call for this time is closed; clients open another. */
const IDLE_MS_MAX = 300_000;
/** Status in the metrics of a call whose caller has disconnected; nothing is sent. */
const CLIENT_GONE = 499;

const EXPORT = /^\/opentelemetry\.proto\.collector\.(trace|logs|metrics)\.v1\.(?:Trace|Logs|Metrics)Service\/Export$/;
const SIGNAL_OF: Readonly<Record<string, Signal>> = { trace: 'traces', logs: 'logs', metrics: 'metrics' };

/** Codes of google.rpc.Code. */
const CODES = {
  INVALID_ARGUMENT: 3,
  NOT_FOUND: 5,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  UNAUTHENTICATED: 16,
} as const;
/** The code for each status of HTTP. Every other status below 500 is INVALID_ARGUMENT. */
const CODE_OF: ReadonlyMap<number, number> = new Map([
  [401, CODES.UNAUTHENTICATED],
  [402, CODES.RESOURCE_EXHAUSTED],
  [403, CODES.PERMISSION_DENIED],
  [404, CODES.NOT_FOUND],
  [413, CODES.RESOURCE_EXHAUSTED],
  [429, CODES.RESOURCE_EXHAUSTED],
  [500, CODES.INTERNAL],
  [502, CODES.UNAVAILABLE],
  [503, CODES.UNAVAILABLE],
]);
const TOO_MANY_REQUESTS = 429;

export interface GrpcServer {
  server: Http2Server;
  /** Accepts no new calls, and resolves once every call has its answer. */
  closeGracefully: () => Promise<void>;
  /** Ends every connection at once. */
  destroy: () => void;
}

/** Returns the server, which does not listen yet. */
export function createGrpcServer(deps: OtlpDeps): GrpcServer {
  const sessions = new Set<ServerHttp2Session>();
  const server = createServer({
    maxSessionMemory: SESSION_MEMORY_MB_MAX,
    settings: { maxConcurrentStreams: STREAMS_MAX },
  });
  server.on('session', (session: ServerHttp2Session) => {
    if (sessions.size >= SESSIONS_MAX) {
      session.destroy();
      return;
    }
    sessions.add(session);
    session.setTimeout(IDLE_MS_MAX, () => {
      session.close();
    });
    session.on('error', () => undefined).once('close', () => sessions.delete(session));
  });
  server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    // The error of a stream ends the read of its message; nobody can be answered any more.
    stream.on('error', () => undefined);
    stream.setTimeout(CALL_MS_MAX, () => {
      stream.close();
    });
    void answer(stream, headers, deps);
  });
  return {
    server,
    closeGracefully: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const session of sessions) session.close();
      await closed;
    },
    destroy: () => {
      for (const session of sessions) session.destroy();
    },
  };
}

async function answer(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, deps: OtlpDeps): Promise<void> {
  const path = headers[':path'] ?? '';
  const type = headers['content-type'] ?? '';
  if (headers[':method'] !== 'POST' || !/^application\/grpc(?:\+proto)?(?:$|;)/.test(type)) {
    stream.respond({ ':status': 415 }, { endStream: true });
    stream.resume();
    return;
  }
  const signal = SIGNAL_OF[EXPORT.exec(path)?.[1] ?? ''];
  if (signal === undefined) {
    sendStatus(stream, {}, unimplemented('There is no such method. Millrace serves Export of the OTLP services.'));
    return;
  }
  const began = performance.now();
  const accepted = { events: 0, bytes: 0, org_id: '' };
  const status = await serve(stream, { headers, path, signal }, accepted, deps);
  deps.observeIngest('otlp', status, accepted.events, accepted.bytes);
  deps.edge.observe(path, 'POST', status, (performance.now() - began) / 1000);
}

interface Call {
  headers: IncomingHttpHeaders;
  path: string;
  signal: Signal;
}

/** Serves a call. Resolves with the status that it would have over HTTP. */
async function serve(
  stream: ServerHttp2Stream,
  { headers, path, signal }: Call,
  accepted: Accepted,
  deps: OtlpDeps,
): Promise<number> {
  const request_id = newRequestId();
  const metadata: Record<string, string> = { [REQUEST_ID_HEADER.toLowerCase()]: request_id };
  const encoding = headers['grpc-encoding'];
  const arrived = {
    signal,
    headers,
    encoding: 'protobuf' as const,
    setHeader: (name: string, value: string) => {
      metadata[name.toLowerCase()] = value;
    },
    readBody: readMessage.bind(null, stream, typeof encoding === 'string' ? encoding : undefined),
  };
  try {
    const read = await acceptExport(arrived, accepted, deps);
    sendMessage(stream, metadata, encodeResponse(partialSuccessOf(read)));
    return 200;
  } catch (thrown) {
    if (stream.destroyed || stream.aborted) return CLIENT_GONE;
    if (thrown instanceof Unimplemented) {
      sendStatus(stream, metadata, unimplemented(thrown.message));
      return 415;
    }
    const error = toApiError(thrown, () => null);
    if (error.status >= 500)
      deps.edge.log.error({ request_id, code: error.code, err: error.cause ?? error }, 'OTLP ingest over gRPC failed');
    deps.refused({ headers, url: path }, { org_id: accepted.org_id, named: undefined }, error);
    sendStatus(stream, metadata, grpcStatusOf(error, request_id));
    return statusOf(error);
  }
}

const unimplemented = (message: string): GrpcStatus => ({
  code: CODES.UNIMPLEMENTED,
  message,
  details: new Uint8Array(),
});

/** Returns the status of an error. */
function grpcStatusOf(error: ApiError, request_id: string): GrpcStatus {
  const code = CODE_OF.get(error.status) ?? CODES.INVALID_ARGUMENT;
  const retryAfter = Number(error.headers['Retry-After']);
  const details = encodeStatus({
    code,
    message: error.detail,
    reason: error.code,
    domain: ERROR_DOMAIN,
    metadata: { request_id },
    ...(error.status === TOO_MANY_REQUESTS && retryAfter > 0 ? { retrySeconds: retryAfter } : {}),
  });
  return { code, message: error.detail, details };
}
