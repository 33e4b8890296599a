// Compresses large text responses with gzip in the thread pool, so that the event loop goes on. Responses that hold a
// secret and responses that are streamed do not pass through here. Bounded: a response that finds COMPRESSING_MAX others
// in compression is sent as it is.
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { preferredCoding } from './accept_encoding.ts';

/** Smaller responses gain less time on the wire than the compression takes. */
export const COMPRESS_BYTES_MIN = 16 * 1024;
/** Twice the threads of the pool: more would only wait there. */
const COMPRESSING_MAX = 8;
/** Level 1 takes a third of the time of the default level, for a result that is a tenth larger. */
const LEVEL = 1;

const zip = promisify(gzip);
let compressing = 0;

/**
 * Sends a text, compressed where it is large and the client accepts that. Sets Content-Length, Content-Encoding and
 * Vary; `headers` are the others. Does nothing where the response has begun or its client has gone.
 */
export async function sendText(
  res: ServerResponse,
  status: number,
  text: string,
  headers: OutgoingHttpHeaders,
): Promise<void> {
  const plain = Buffer.from(text);
  const isLarge = plain.byteLength >= COMPRESS_BYTES_MIN;
  if (isLarge && !res.headersSent) addVary(res, 'Accept-Encoding');
  const body = isLarge ? await compressed(res, plain) : null;
  if (res.headersSent || res.destroyed) return;
  res.writeHead(status, {
    ...headers,
    'Content-Length': (body ?? plain).byteLength,
    ...(body === null ? {} : { 'Content-Encoding': 'gzip' }),
  });
  res.end(body ?? plain);
}

/** Returns the text in gzip; null where the client does not accept it, or too much is being compressed. */
async function compressed(res: ServerResponse, plain: Buffer): Promise<Buffer | null> {
  if (preferredCoding(acceptedOf(res), ['gzip']) === null || compressing >= COMPRESSING_MAX) return null;
  compressing += 1;
  try {
    return await zip(plain, { level: LEVEL });
  } finally {
    compressing -= 1;
  }
}

function acceptedOf(res: ServerResponse): string | undefined {
  const header = res.req.headers['accept-encoding'];
  return typeof header === 'string' ? header : undefined;
}

/** Adds a header name to Vary. */
export function addVary(res: ServerResponse, name: string): void {
  const before = res.getHeader('Vary');
  res.setHeader('Vary', typeof before === 'string' && before !== '' ? `${before}, ${name}` : name);
}
