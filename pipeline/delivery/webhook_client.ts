// Makes one attempt of a delivery over HTTP. It takes a URL, headers and a body, and returns the
// status that the receiver answered with, or the reason why none came. Guarantees: an attempt ends
// within its timeout; it connects only where the guard (ssrf.ts) allows, and follows no redirect.
// Of the answer's body at most DRAIN_BYTES_MAX are read, so that the connection can be reused, and
// none are kept.
import {
  Agent as HttpAgent,
  type ClientRequest,
  type IncomingMessage,
  request as httpRequest,
  type RequestOptions,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { isIP } from 'node:net';
import { hostOf } from '../domain/webhooks/url.ts';
import { allowedAddresses, type GuardOptions, guardedLookup } from './ssrf.ts';

/** Idle connections are closed after this long. */
const IDLE_MS = 5000;
/** Maximum number of idle connections to one host. */
const IDLE_SOCKETS_MAX = 32;
/**
 * Bytes of an answer's body that are read, and the time for it, before the connection is closed
 * instead.
 */
const DRAIN_BYTES_MAX = 16 * 1024;
const DRAIN_MS = 1000;
const HEADER_BYTES_MAX = 16 * 1024;
const ERROR_CHARS_MAX = 200;

export interface Attempt {
  url: string;
  headers: Readonly<Record<string, string>>;
  body: Buffer;
  /** Time from the start of name resolution to the headers of the answer, milliseconds. */
  timeoutMs: number;
  /** Breaks off the attempt, as if no answer came. */
  signal: AbortSignal;
}

export interface AttemptResult {
  /** HTTP status; null when no answer came. */
  status: number | null;
  /** Reason why no answer came; null when one did. */
  error: string | null;
  retry_after: string | undefined;
  duration_ms: number;
}

export class WebhookClient {
  readonly #guard: GuardOptions;
  readonly #http: HttpAgent;
  readonly #https: HttpsAgent;

  constructor(guard: GuardOptions) {
    this.#guard = guard;
    const options = {
      keepAlive: true,
      maxFreeSockets: IDLE_SOCKETS_MAX,
      timeout: IDLE_MS,
      lookup: guardedLookup(guard),
    };
    this.#http = new HttpAgent(options);
    this.#https = new HttpsAgent(options);
  }

  /** Resolves with the result of an attempt. Never rejects. */
  async post(attempt: Attempt): Promise<AttemptResult> {
    const began = performance.now();
    const ended = (result: Omit<AttemptResult, 'duration_ms'>): AttemptResult => ({
      ...result,
      duration_ms: Math.round(performance.now() - began),
    });
    try {
      const url = new URL(attempt.url);
      const host = hostOf(url);
      // A socket does not call `lookup` for an address.
      if (isIP(host) !== 0) await allowedAddresses(host, this.#guard);
      const answer = await this.#exchange(url, attempt);
      return ended({ status: answer.statusCode ?? 0, error: null, retry_after: answer.headers['retry-after'] });
    } catch (error) {
      return ended({ status: null, error: reasonOf(error), retry_after: undefined });
    }
  }

  /** Closes all connections. */
  close(): void {
    this.#http.destroy();
    this.#https.destroy();
  }

  /** Resolves with the answer once its body has been read or given up. */
  #exchange(url: URL, { headers, body, timeoutMs, signal }: Attempt): Promise<IncomingMessage> {
    const secure = url.protocol === 'https:';
    const options: RequestOptions = {
      method: 'POST',
      headers: { ...headers, 'Content-Length': body.length },
      agent: secure ? this.#https : this.#http,
      maxHeaderSize: HEADER_BYTES_MAX,
    };
    return new Promise((resolve, reject) => {
      const req: ClientRequest = (secure ? httpsRequest : httpRequest)(url, options);
      const stop = (error: Error) => {
        reject(error);
        req.destroy();
      };
      const timer = setTimeout(() => {
        stop(new Error(`no answer within ${timeoutMs} ms`));
      }, timeoutMs);
      const onAbort = () => {
        stop(new Error('ended before an answer came'));
      };
      signal.addEventListener('abort', onAbort, { once: true });
      const settle = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
      };
      req.once('response', (res) => {
        settle();
        void drained(res).then(() => {
          resolve(res);
        });
      });
      req.once('upgrade', (res, socket) => {
        settle();
        socket.destroy();
        resolve(res);
      });
      req.once('error', (error) => {
        settle();
        reject(error);
      });
      req.end(body);
    });
  }
}

/**
 * Reads the rest of an answer. A body that is long or slow costs the connection, and nothing more.
 */
function drained(res: IncomingMessage): Promise<void> {
  return new Promise((resolve) => {
    let bytes = 0;
    const end = () => {
      clearTimeout(timer);
      resolve();
    };
    const timer = setTimeout(() => res.destroy(), DRAIN_MS);
    res.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > DRAIN_BYTES_MAX) res.destroy();
    });
    res.once('error', end);
    res.once('close', end);
  });
}

/**
 * Returns the reason of a failure in words for the owner of the receiver, without the addresses
 * that Node's messages name.
 */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'the connection failed';
  // When several addresses were tried, the reason of the first stands for all.
  const first: unknown = error instanceof AggregateError ? (error.errors as unknown[])[0] : error;
  const code = first instanceof Error && 'code' in first && typeof first.code === 'string' ? first.code : null;
  const known = code === null ? undefined : REASONS[code];
  return (known ?? (code === null ? error.message : `the connection failed: ${code}`)).slice(0, ERROR_CHARS_MAX);
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection broke before an answer came',
  EPIPE: 'the connection broke before an answer came',
  ETIMEDOUT: 'the connection timed out',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the host cannot be reached',
};
