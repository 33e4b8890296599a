// Requests written byte by byte to a socket, for client behaviour that fetch cannot imitate: a
// client that writes everything before it reads, closes the writing half before the answer, or
// stops in the middle.
import { connect, type Socket } from 'node:net';

/** Longest wait for an answer, in milliseconds. The service decides within a few seconds. */
const ANSWER_MS_MAX = 20_000;

export interface RawAnswer {
  /** 0 if the connection ended without an answer. */
  status: number;
  head: string;
  body: string;
  /**
   * The code of the socket's error, such as ECONNRESET; null if the connection ended without one.
   */
  error: string | null;
}

export interface RawRequest {
  head: readonly string[];
  /**
   * Written after the head, in order. Reading starts after the kernel has accepted the last piece.
   */
  pieces: Iterable<Uint8Array | string>;
  /** Closes the writing half after the last piece. */
  halfClose?: boolean;
}

/** Writes the whole request, then reads the answer to its end. */
export async function writeThenRead(port: number, { head, pieces, halfClose = false }: RawRequest): Promise<RawAnswer> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.pause();
  let error: string | null = null;
  socket.on('error', (cause: NodeJS.ErrnoException) => (error = cause.code ?? cause.message));
  socket.setTimeout(ANSWER_MS_MAX, () => socket.destroy());
  const closed = new Promise((resolve) => socket.once('close', resolve));
  await written(socket, `${head.join('\r\n')}\r\n\r\n`);
  for (const piece of pieces) {
    if (socket.destroyed) break;
    await written(socket, piece);
  }
  if (halfClose) socket.end();
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk)).on('end', () => socket.end());
  socket.resume();
  await closed;
  return { ...parsed(Buffer.concat(chunks).toString('latin1')), error };
}

function written(socket: Socket, piece: Uint8Array | string): Promise<void> {
  return new Promise((resolve) => {
    // The error event records the error. An answer sent before it can still be read.
    socket.write(piece, () => {
      resolve();
    });
  });
}

function parsed(text: string): Omit<RawAnswer, 'error'> {
  const [head = '', ...rest] = text.split('\r\n\r\n');
  return { status: Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1] ?? 0), head, body: rest.join('\r\n\r\n') };
}

/** Yields a body of `bytes` bytes in pieces of 64 KiB. */
export function* pieces(bytes: number): Generator<Uint8Array> {
  const piece = Buffer.alloc(64 * 1024, 'x');
  for (let left = bytes; left > 0; left -= piece.length) yield piece.subarray(0, Math.min(left, piece.length));
}

/** Yields the same body in chunked transfer encoding. */
export function* chunks(bytes: number): Generator<Uint8Array | string> {
  for (const piece of pieces(bytes))
    yield Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]);
  yield '0\r\n\r\n';
}
