// One try of one delivery over HTTP. In: an address, headers, the bytes. Out: the status that came, or why none did.
// Guarantees: ends within its time whatever the receiver does; connects only where the guard lets it; follows no redirect;
// of the answer's body it reads a little, so that the connection can be used again, and keeps nothing.
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

/** A connection that is not used again within this time is closed. */
const IDLE_MS = 5000;
/** Idle connections to one host. */
const IDLE_SOCKETS_MAX = 32;
/** What is read of an answer's body, and for how long, before the connection is closed instead. */
const DRAIN_BYTES_MAX = 16 * 1024;
const DRAIN_MS = 1000;
const HEADER_BYTES_MAX = 16 * 1024;
const ERROR_CHARS_MAX = 200;

export interface Attempt {
  url: string;
  headers: Readonly<Record<string, string>>;
  body: Buffer;
  /** From the name's resolution to the answer's headers, milliseconds. */
  timeoutMs: number;
  /** Ends the try at once, as if no answer came. */
  signal: AbortSignal;
}

export interface AttemptResult {
  /** null where no answer came. */
  status: number | null;
  /** Why none came; null where one did. */
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

  /** Never rejects. */
  async post(attempt: Attempt): Promise<AttemptResult> {
    const began = performance.now();
    const ended = (result: Omit<AttemptResult, 'duration_ms'>): AttemptResult => ({
      ...result,
      duration_ms: Math.round(performance.now() - began),
    });
    try {
      const url = new URL(attempt.url);
      const host = hostOf(url);
      // A socket asks no lookup about an address.
      if (isIP(host) !== 0) await allowedAddresses(host, this.#guard);
      const answer = await this.#exchange(url, attempt);
      return ended({ status: answer.statusCode ?? 0, error: null, retry_after: answer.headers['retry-after'] });
    } catch (error) {
      return ended({ status: null, error: reasonOf(error), retry_after: undefined });
    }
  }

  /** Closes every connection. */
  close(): void {
    this.#http.destroy();
    this.#https.destroy();
  }

  /** Resolves with the answer once its body has been dealt with. */
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
        stop(new Error(`no answer within ${String(timeoutMs)} ms`));
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

/** Reads what is left of an answer; a body that is long or slow costs the connection, never more. */
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

/** In the words of whoever owns the receiver: what Node says of the connection, without the addresses that it names. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'the connection failed';
  // Several addresses were tried: the first one's reason stands for all.
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
