// Responses sent before the request's body has arrived, mostly rejections. Closing a connection
// with unread bytes resets it, and the reset destroys the response before a client that is still
// writing reads it. The body is therefore discarded before the response (discardBody), and the
// connection lingers after it while the rest arrives (lingerAfter). A client that waits for 100
// Continue gets it only once its body is wanted (deferContinue, sendContinue). Bytes
// and time are bounded for each request, and so is the number of connections that are read only to
// be discarded.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/**
 * Maximum bytes of one request that are discarded, before and after its response, counted on the
 * wire.
 */
export const DISCARD_BYTES_MAX = 64 * 1024 * 1024;
/** Milliseconds for which a body is discarded before the response is sent anyway. */
export const DISCARD_MS_MAX = 2000;
/** Milliseconds for which a connection is read after its response before it is closed. */
export const LINGER_MS_MAX = 2000;
/**
 * Maximum number of connections of one process that are read only to be discarded. Further
 * rejections are sent at once and their connections closed, so a flood of large bodies costs its
 * senders their responses and the service nothing more.
 */
export const DISCARDING_MAX = 256;

const PAYLOAD_TOO_LARGE = 413;

let discarding = 0;
/** Position of a connection, in bytes on the wire, at which reading of the request stops. */
const byteLimits = new WeakMap<IncomingMessage, number>();
/** Ends the discarding on a connection whose request has turned out to be malformed or cut off. */
const stops = new WeakMap<Duplex, () => void>();
/** Requests whose clients wait for 100 Continue. */
const continues = new WeakMap<IncomingMessage, { res: ServerResponse; keepAlive: boolean }>();

function hasBody({ headers }: IncomingMessage): boolean {
  if (headers['transfer-encoding'] !== undefined) return true;
  const length = headers['content-length'];
  return length !== undefined && length !== '0';
}

/**
 * Defers the 100 Continue that a client waits for. Unless it is sent, the connection closes with
 * the response, because the following bytes could be the body or the next request.
 */
export function deferContinue(req: IncomingMessage, res: ServerResponse): void {
  continues.set(req, { res, keepAlive: res.shouldKeepAlive });
  res.shouldKeepAlive = false;
}

/** Tells a client that waits for 100 Continue to send its body. */
export function sendContinue(req: IncomingMessage): void {
  const held = continues.get(req);
  if (held === undefined) return;
  continues.delete(req);
  held.res.shouldKeepAlive = held.keepAlive;
  held.res.writeContinue();
}

/**
 * Discards the unread part of a request's body, up to DISCARD_BYTES_MAX and DISCARD_MS_MAX. Called
 * before a rejection is sent. The connection closes after the response if part of the body is still
 * missing, and after every 413.
 * @param status status of the response
 */
export async function discardBody(req: IncomingMessage, res: ServerResponse, status: number): Promise<void> {
  if (res.headersSent) return;
  if (status === PAYLOAD_TOO_LARGE) res.setHeader('Connection', 'close');
  if (!hasBody(req) || req.readableEnded || req.destroyed || continues.has(req)) return;
  const isWhole = discarding < DISCARDING_MAX && (await discard(req));
  if (!isWhole) res.setHeader('Connection', 'close');
}

/**
 * Resolves with true when the body has ended; with false when the sender has disconnected or broken
 * the protocol, or at a bound.
 */
function discard(req: IncomingMessage): Promise<boolean> {
  return new Promise((resolve) => {
    const { socket } = req;
    const limit = byteLimitOf(req);
    const onData = () => {
      if (socket.bytesRead <= limit) return;
      req.pause();
      settle();
    };
    const settle = () => {
      clearTimeout(timer);
      req.off('data', onData).off('end', settle).off('close', settle).off('error', settle);
      stops.delete(socket);
      discarding--;
      resolve(req.readableEnded);
    };
    const timer = setTimeout(settle, DISCARD_MS_MAX);
    discarding++;
    stops.set(socket, settle);
    req.on('data', onData).on('end', settle).on('close', settle).on('error', settle).resume();
  });
}

/**
 * Ends the discarding on a connection without a valid request.
 * @returns true if a rejection was waiting, which is then sent
 */
export function stopDiscarding(socket: Duplex): boolean {
  const stop = stops.get(socket);
  stop?.();
  return stop !== undefined;
}

/**
 * Keeps a connection open for reading after a response that was sent before the body had arrived:
 * the writing half is closed at once, the rest of the body is discarded for up to LINGER_MS_MAX.
 * Called for every request before its response.
 */
export function lingerAfter(req: IncomingMessage, res: ServerResponse): void {
  if (!hasBody(req)) return;
  // Runs before the server's own listener, which destroys the connection after its last response.
  res.prependListener('finish', () => {
    if (!req.complete && !req.destroyed && discarding < DISCARDING_MAX) linger(req);
  });
}

function linger(req: IncomingMessage): void {
  const { socket } = req;
  const limit = byteLimitOf(req);
  discarding++;
  socket.destroySoon = () => {
    socket.end();
  };
  const timer = setTimeout(() => {
    socket.destroy();
  }, LINGER_MS_MAX);
  const onData = () => {
    if (socket.bytesRead > limit) req.pause();
  };
  const settle = () => {
    clearTimeout(timer);
    req.off('data', onData).off('end', settle).off('close', settle);
    Reflect.deleteProperty(socket, 'destroySoon');
    discarding--;
    if (socket.writableEnded) socket.destroySoon();
  };
  req.on('data', onData).on('end', settle).on('close', settle);
  if (socket.bytesRead <= limit) req.resume();
}

function byteLimitOf(req: IncomingMessage): number {
  const known = byteLimits.get(req);
  if (known !== undefined) return known;
  const limit = req.socket.bytesRead + DISCARD_BYTES_MAX;
  byteLimits.set(req, limit);
  return limit;
}
