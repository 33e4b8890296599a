// The framing of gRPC over HTTP/2: one length-prefixed message in a request and in a response, and
// the status in trailers. Takes streams of node:http2; bounds the message while it arrives, before
// and after decompression.
import type { OutgoingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { BodyOptions } from '../../http/body.ts';
import { MalformedBody } from '../../http/body.ts';
import { ApiError } from '../../http/errors.ts';
import { DISCARD_BYTES_MAX, DISCARD_MS_MAX } from '../../http/unread_body.ts';

const unzip = promisify(gunzip);
/** Bytes before a message: a flag for compression, and the length as 32 bits. */
const PREFIX_BYTES = 5;
const UNZIP_CHUNK_BYTES = 128 * 1024;

/** The call asks for something that gRPC leaves to servers, such as another compression. */
export class Unimplemented extends Error {}

const tooLarge = (bytesMax: number): ApiError =>
  new ApiError('payload_too_large', `The message is larger than ${bytesMax} bytes.`);

/**
 * Reads the one message of a unary call.
 * @throws ApiError payload_too_large as soon as it is known, or what `grow` returned; MalformedBody;
 * Unimplemented; Error 'aborted' when the caller is gone
 */
export async function readMessage(
  stream: ServerHttp2Stream,
  encoding: string | undefined,
  options: BodyOptions,
): Promise<Buffer> {
  const framed = await collect(stream, options);
  if (framed.length < PREFIX_BYTES) throw new MalformedBody('the call has no message');
  const message = framed.subarray(PREFIX_BYTES);
  const length = framed.readUInt32BE(1);
  if (message.length < length) throw new MalformedBody('the message is shorter than its length says');
  if (message.length > length) throw new MalformedBody('the call is unary and has one message');
  const isCompressed = framed[0] !== 0;
  if (!isCompressed) return message;
  if (encoding !== 'gzip') throw new Unimplemented('grpc-encoding must be gzip or identity');
  return await decompress(message, options);
}

function collect(stream: ServerHttp2Stream, { bytesMax, grow }: BodyOptions): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const settle = (error: Error | null) => {
      stream.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone);
      if (error === null) resolve(Buffer.concat(chunks, bytes));
      else reject(error);
    };
    const onData = (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > bytesMax + PREFIX_BYTES) {
        settle(tooLarge(bytesMax));
        return;
      }
      const refusal = grow?.(chunk.length) ?? null;
      if (refusal !== null) settle(refusal);
      else chunks.push(chunk);
    };
    const onEnd = () => {
      settle(null);
    };
    const onGone = () => {
      settle(new Error('aborted'));
    };
    stream.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone);
  });
}

async function decompress(message: Buffer, { bytesMax, grow }: BodyOptions): Promise<Buffer> {
  let body: Buffer;
  try {
    body = await unzip(message, { maxOutputLength: bytesMax, chunkSize: UNZIP_CHUNK_BYTES });
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(bytesMax);
    throw new MalformedBody('the message is not valid gzip data', { cause });
  }
  const refusal = grow?.(body.length) ?? null;
  if (refusal !== null) throw refusal;
  return body;
}

const HEADERS: OutgoingHttpHeaders = {
  ':status': 200,
  'content-type': 'application/grpc+proto',
  'grpc-accept-encoding': 'identity,gzip',
};

/** Sends a message and the status OK. */
export function sendMessage(stream: ServerHttp2Stream, metadata: OutgoingHttpHeaders, message: Uint8Array): void {
  if (stream.destroyed || stream.closed) return;
  stream.respond({ ...HEADERS, ...metadata }, { waitForTrailers: true });
  stream.on('wantTrailers', () => {
    stream.sendTrailers({ 'grpc-status': '0' });
  });
  const framed = Buffer.alloc(PREFIX_BYTES + message.length);
  framed.writeUInt32BE(message.length, 1);
  framed.set(message, PREFIX_BYTES);
  stream.end(framed);
}

/** A status other than OK. */
export interface GrpcStatus {
  code: number;
  message: string;
  /** A google.rpc.Status; empty for none. */
  details: Uint8Array;
}

/** Sends a status without a message. */
export function sendStatus(
  stream: ServerHttp2Stream,
  metadata: OutgoingHttpHeaders,
  { code, message, details }: GrpcStatus,
): void {
  if (stream.destroyed || stream.closed) return;
  stream.respond(
    {
      ...HEADERS,
      ...metadata,
      'grpc-status': String(code),
      'grpc-message': percentEncoded(message),
      ...(details.length === 0 ? {} : { 'grpc-status-details-bin': Buffer.from(details).toString('base64') }),
    },
    { endStream: true },
  );
  discardRest(stream);
}

/** Discards what the caller still writes, within bounds; then the stream is reset. */
function discardRest(stream: ServerHttp2Stream): void {
  if (stream.readableEnded || stream.destroyed) return;
  const timer = setTimeout(() => {
    stream.close();
  }, DISCARD_MS_MAX);
  let bytes = 0;
  stream.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > DISCARD_BYTES_MAX) stream.close();
  });
  stream.once('close', () => {
    clearTimeout(timer);
  });
}

/** gRPC sends messages as printable ASCII; all other bytes of UTF-8, and %, are percent-encoded. */
function percentEncoded(message: string): string {
  let out = '';
  for (const byte of Buffer.from(message, 'utf8'))
    out +=
      byte >= 0x20 && byte <= 0x7e && byte !== 0x25
        ? String.fromCharCode(byte)
        : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  return out;
}
