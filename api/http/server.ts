// The HTTP server around the request listener: bounds times, answers invalid HTTP with an error,
// and closes without cutting off a response.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Server as NetServer } from 'node:net';
import type { Duplex } from 'node:stream';
import { SECURITY_HEADERS } from '../../ops/platform/security_headers.ts';
import { newRequestId } from './request_id.ts';
import { deferContinue, lingerAfter, stopDiscarding } from './unread_body.ts';

const HEADERS_MS_MAX = 15_000;
const REQUEST_MS_MAX = 120_000;
/**
 * Longer than the idle timeout of common proxies, so that none of them sends into a connection that
 * the service is closing.
 */
const KEEP_ALIVE_MS = 65_000;
const CLOSE_SWEEP_MS = 50;

/** The state of a server that may be about to close. */
interface Answering {
  /** True once responses end their connections; see announceClose. */
  isClosing: boolean;
  /** Responses that have not ended. */
  open: Set<ServerResponse>;
}

const answering = new WeakMap<Server, Answering>();

/**
 * Returns a server whose every response, even to invalid HTTP, has a request id and the security
 * headers.
 */
export function httpServer(listener: (req: IncomingMessage, res: ServerResponse) => void): Server {
  // Node answers a missing Host header and an unknown expectation without a body. The listener
  // below checks the header itself and ignores the expectation, as HTTP allows.
  const server = createServer({
    headersTimeout: HEADERS_MS_MAX,
    requestTimeout: REQUEST_MS_MAX,
    keepAliveTimeout: KEEP_ALIVE_MS,
    noDelay: true,
    requireHostHeader: false,
  });
  const state: Answering = { isClosing: false, open: new Set() };
  answering.set(server, state);
  const serve = (req: IncomingMessage, res: ServerResponse) => {
    // A request after a response with Connection: close is not served, because no response can be
    // sent any more.
    if (req.socket.writableEnded) {
      req.socket.destroy();
      return;
    }
    lingerAfter(req, res);
    if (state.isClosing) res.shouldKeepAlive = false;
    state.open.add(res);
    res.once('close', () => state.open.delete(res));
    if (req.headers.host === undefined && req.httpVersion === '1.1')
      refuse(req.socket, '400 Bad Request', 'The Host header is required.');
    else {
      for (const [name, value] of SECURITY_HEADERS) res.setHeader(name, value);
      listener(req, res);
    }
  };
  server.on('request', serve).on('checkExpectation', serve);
  server.on('checkContinue', (req, res) => {
    if (state.isClosing) res.shouldKeepAlive = false;
    deferContinue(req, res);
    serve(req, res);
  });
  server.on('connect', (_, socket) => {
    refuse(socket, '400 Bad Request', 'This service is not a proxy.');
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (!socket.writable || error.code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    if (stopDiscarding(socket)) return;
    if (error.code === 'HPE_HEADER_OVERFLOW')
      refuse(socket, '431 Request Header Fields Too Large', 'The headers are too large.');
    else if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT')
      refuse(socket, '408 Request Timeout', 'The request took too long to arrive.');
    else refuse(socket, '400 Bad Request', 'This is not an HTTP request.');
  });
  return server;
}

const HEADER_LINES = SECURITY_HEADERS.map(([name, value]) => `${name}: ${value}\r\n`).join('');

/** Writes an error to a connection without a valid request, and ends the connection. */
function refuse(socket: Duplex, status: string, detail: string): void {
  const request_id = newRequestId();
  const body = JSON.stringify({ detail, request_id, code: 'invalid_request' });
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json; charset=utf-8\r\n${HEADER_LINES}X-Request-Id: ${request_id}\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}

/**
 * Listens; resolves with the port, which the system chooses for port 0.
 * @param setting the variable that the port is set by
 * @throws Error with one line when the port is not available
 */
export function listen(server: NetServer, host: string, port: number, setting = 'SERVICE_PORT'): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const why =
        error.code === 'EADDRINUSE'
          ? `is in use; set ${setting} to a free one`
          : error.code === 'EACCES'
            ? 'may not be used by this user'
            : `cannot be listened on: ${error.message}`;
      reject(new Error(`Port ${port} on ${host} ${why}`, { cause: error }));
    });
    server.listen(port, host, () => {
      resolve((server.address() as AddressInfo).port);
    });
  });
}

/**
 * Ends each connection with its next response, which says `Connection: close`, so that clients do not send
 * requests into connections that are about to be closed. The server still accepts connections.
 */
export function announceClose(server: Server): void {
  const state = answering.get(server);
  if (state === undefined) return;
  state.isClosing = true;
  for (const res of state.open) if (!res.headersSent) res.shouldKeepAlive = false;
}

/**
 * Accepts no new connections, and resolves once every request has its response. Idle connections
 * are closed, and the others with their next response.
 */
export async function closeGracefully(server: Server): Promise<void> {
  announceClose(server);
  const closed = new Promise((resolve) => server.close(resolve));
  const sweep = setInterval(() => {
    server.closeIdleConnections();
  }, CLOSE_SWEEP_MS);
  server.closeIdleConnections();
  await closed;
  clearInterval(sweep);
}
