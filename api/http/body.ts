// Reads request bodies: bounded while they arrive, decompressed under the same bound, strict about
// their type. Takes a request whose body has not been read; returns the decompressed bytes, or
// rejects the request. Never uses more memory than the bound, whatever the sender claims.
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip } from 'node:zlib';
import { ApiError } from './errors.ts';
import { sendContinue } from './unread_body.ts';

const unzip = { gzip: promisify(gunzip), br: promisify(brotliDecompress) } as const;
type Encoding = keyof typeof unzip;

/** Chunk size of decompression. */
const UNZIP_CHUNK_BYTES = 128 * 1024;

/** A body that contradicts its headers; each kind of route has its own error code for it. */
export class MalformedBody extends Error {}

/** Reserves bytes while they arrive. An error stops the read. */
type Grow = (bytes: number) => ApiError | null;

export interface BodyOptions {
  bytesMax: number;
  /** Called for every piece before it is kept in memory, before and after decompression. */
  grow?: Grow;
}

/**
 * Rejects a content type other than JSON. A request without one is read as JSON.
 * @param plain true to accept text/plain, which pages can send without a preflight, as JSON too
 * @throws ApiError unsupported_media_type
 */
export function checkJsonType(contentType: string | undefined, plain = false): void {
  if (contentType === undefined || contentType === 'application/json' || contentType === '') return;
  const [type = '', ...parameters] = contentType
    .toLowerCase()
    .split(';')
    .map((part) => part.trim());
  const charset = parameters
    .find((parameter) => parameter.startsWith('charset='))
    ?.slice('charset='.length)
    .replaceAll('"', '');
  const isJson =
    type === 'application/json' || /^application\/[a-z0-9.-]+\+json$/.test(type) || (plain && type === 'text/plain');
  if (isJson && (charset === undefined || charset === 'utf-8' || charset === 'utf8' || charset === 'us-ascii')) return;
  throw new ApiError(
    'unsupported_media_type',
    `Content-Type: must be application/json${plain ? ' or text/plain' : ''} in UTF-8.`,
  );
}

/**
 * Returns the content encoding; null for none.
 * @throws ApiError unsupported_media_type
 */
function encodingOf(req: IncomingMessage): Encoding | null {
  const given = req.headers['content-encoding']?.trim().toLowerCase();
  if (given === undefined || given === '' || given === 'identity') return null;
  if (given === 'gzip' || given === 'x-gzip') return 'gzip';
  if (given === 'br') return 'br';
  throw new ApiError('unsupported_media_type', 'Content-Encoding: must be gzip, br or absent');
}

function tooLarge(bytesMax: number): ApiError {
  return new ApiError('payload_too_large', `The body is larger than ${bytesMax} bytes.`);
}

/**
 * Reads a whole body.
 * @throws ApiError payload_too_large as soon as it is known, unsupported_media_type, or what `grow`
 * returned; MalformedBody when the body cannot be decompressed; Error 'aborted' when the sender
 * disconnected
 */
export async function readBody(req: IncomingMessage, options: BodyOptions): Promise<Buffer> {
  const encoding = encodingOf(req);
  const length = Number(req.headers['content-length'] ?? 0);
  if (length > options.bytesMax) throw tooLarge(options.bytesMax);
  sendContinue(req);
  const raw = await collect(req, options);
  if (encoding === null) return raw;
  return await decompress(raw, encoding, options);
}

function collect(req: IncomingMessage, { bytesMax, grow }: BodyOptions): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const settle = (error: Error | null) => {
      req.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone);
      if (error === null)
        resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, bytes));
      else reject(error);
    };
    const onData = (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > bytesMax) {
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
    req.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone);
  });
}

async function decompress(raw: Buffer, encoding: Encoding, { bytesMax, grow }: BodyOptions): Promise<Buffer> {
  let body: Buffer;
  try {
    body = await unzip[encoding](raw, { maxOutputLength: bytesMax, chunkSize: UNZIP_CHUNK_BYTES });
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(bytesMax);
    throw new MalformedBody(`the body is not valid ${encoding} data`, { cause });
  }
  const refusal = grow?.(body.length) ?? null;
  if (refusal !== null) throw refusal;
  return body;
}

/**
 * Parses a body as JSON in UTF-8; a byte order mark is skipped.
 * @throws MalformedBody
 */
export function parseJson(body: Buffer): unknown {
  if (!isUtf8(body)) throw new MalformedBody('the body is not UTF-8');
  const start = body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? 3 : 0;
  try {
    return JSON.parse(body.toString('utf8', start)) as unknown;
  } catch (cause) {
    throw new MalformedBody('the body is not JSON', { cause });
  }
}
