// One request to one upstream, and the way of its answer to the caller: bytes as they arrive, at
// the pace of the slower side. Nothing is sent twice. An upstream that is silent for its timeout,
// and a caller that reads nothing for STALL_MS, end the exchange. Nothing is sent to the caller
// before the first bytes of the answer, so that another upstream can still be asked; a short answer
// is sent only when it is complete.
import {
  Agent as HttpAgent,
  type ClientRequest,
  type IncomingMessage,
  request as httpRequest,
  type ServerResponse,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { GatewayTarget } from '../../../ops/platform/llm/routes.ts';

/**
 * Milliseconds after which an idle connection is not reused. Common servers close theirs after 5 s,
 * and a request sent into a closing one is lost.
 */
const IDLE_SOCKET_MS = 4000;
const IDLE_SOCKETS_MAX = 256;
/** A caller that reads nothing for this long is considered gone. */
const STALL_MS = 120_000;
/** Maximum bytes of an answer that is held until it is decided on; a longer one is withheld. */
const HELD_BYTES_MAX = 8 * 1024 * 1024;
/** Maximum bytes of an answer, other than a stream, that is buffered until it is complete. */
const BUFFERED_BYTES_MAX = 256 * 1024;

const agents = {
  'http:': new HttpAgent({
    keepAlive: true,
    maxFreeSockets: IDLE_SOCKETS_MAX,
    timeout: IDLE_SOCKET_MS,
    scheduling: 'lifo',
  }),
  'https:': new HttpsAgent({
    keepAlive: true,
    maxFreeSockets: IDLE_SOCKETS_MAX,
    timeout: IDLE_SOCKET_MS,
    scheduling: 'lifo',
  }),
};

/**
 * How an exchange ended. lost: the upstream closed the connection or never answered; gone: the
 * caller disconnected.
 */
export type Ending = 'complete' | 'lost' | 'timeout' | 'gone';

/** How the answer of a call ended for the caller. withheld: a guard blocks it. */
export type RelayEnding = Ending | 'withheld';

export interface Asked {
  method: 'GET' | 'POST';
  /** Path below the base URL, with its query. */
  path: string;
  headers: Record<string, string | string[]>;
  body: Buffer | null;
}

/** An answer has begun, or the request has failed. */
export type Begun =
  | { answer: IncomingMessage; failed: null; request: ClientRequest }
  | { answer: null; failed: 'lost' | 'timeout' | 'gone'; cause: unknown };

/**
 * Sends a request to an upstream. Resolves with the head of the answer.
 * @param res response to the caller; when it closes, the request ends
 */
export function ask(
  { base_url, timeout_ms }: GatewayTarget,
  { method, path, headers, body }: Asked,
  res: ServerResponse,
): Promise<Begun> {
  return new Promise((resolve) => {
    const secure = base_url.protocol === 'https:';
    const send = secure ? httpsRequest : httpRequest;
    const options = {
      agent: secure ? agents['https:'] : agents['http:'],
      protocol: base_url.protocol,
      // IPv6 addresses have brackets in URLs only.
      hostname: base_url.hostname.replace(/^\[|\]$/g, ''),
      port: base_url.port === '' ? undefined : base_url.port,
      path: (base_url.pathname === '/' ? '' : base_url.pathname) + path,
      method,
      headers: body === null ? headers : { ...headers, 'content-length': String(body.length) },
    };
    let request: ClientRequest;
    try {
      request = send(options);
    } catch (cause) {
      resolve({ answer: null, failed: 'lost', cause });
      return;
    }
    const settle = (begun: Begun) => {
      clearTimeout(timer);
      res.off('close', onGone);
      resolve(begun);
    };
    const onGone = () => {
      settle({ answer: null, failed: 'gone', cause: null });
      request.destroy();
    };
    const timer = setTimeout(() => {
      settle({ answer: null, failed: 'timeout', cause: null });
      request.destroy();
    }, timeout_ms);
    res.on('close', onGone);
    request.on('response', (answer) => {
      settle({ answer, failed: null, request });
    });
    // Once an answer has begun, its own stream reports errors.
    request.on('error', (cause) => {
      settle({ answer: null, failed: 'lost', cause });
    });
    request.end(body ?? undefined);
    if (res.destroyed) onGone();
  });
}

export interface RelayOptions {
  timeout_ms: number;
  /** True if the answer is passed on piece by piece from its first bytes. */
  streamed: boolean;
  /**
   * Sends the head. Called once, before the first byte, with the length where the whole body is
   * known.
   */
  begin: (length: number | null) => void;
  /** Takes bytes of the answer and returns those for the caller. */
  take: (chunk: Buffer) => Buffer;
  /** Returns the last bytes for the caller when the answer is complete. */
  rest: () => Buffer;
  /**
   * Decides on the whole answer before the caller gets any of it: returns the bytes for the caller,
   * or null to withhold the answer. Null: answers are not held.
   */
  decide: ((whole: Buffer | null) => Buffer | null) | null;
}

/** How an answer was passed on. */
export interface Relayed {
  ending: RelayEnding;
  /** True once the caller has got any of the answer. */
  begun: boolean;
}

/**
 * Passes an answer on. Resolves when the answer has ended and all of it has been written to the
 * connection of the caller.
 */
export function relay(
  answer: IncomingMessage,
  request: ClientRequest,
  res: ServerResponse,
  options: RelayOptions,
): Promise<Relayed> {
  return new Relay(answer, request, res, options).ended;
}

class Relay {
  readonly #answer: IncomingMessage;
  readonly #request: ClientRequest;
  readonly #res: ServerResponse;
  readonly #options: RelayOptions;
  readonly #ended = Promise.withResolvers<Relayed>();
  /**
   * Ends the relay: the upstream is silent for its timeout, or the caller reads nothing for
   * STALL_MS.
   */
  #timer: NodeJS.Timeout;
  #begun = false;
  #done = false;
  /** Pieces of a short answer, until it is whole. */
  #buffered: Buffer[] = [];
  #bufferedBytes = 0;
  /** True while the connection of the caller takes no more. */
  #stalled = false;

  constructor(answer: IncomingMessage, request: ClientRequest, res: ServerResponse, options: RelayOptions) {
    this.#answer = answer;
    this.#request = request;
    this.#res = res;
    this.#options = options;
    this.#timer = this.#awaitUpstream();
    const lost = () => {
      this.#settle('lost');
    };
    answer
      .on('data', (chunk: Buffer) => {
        this.#take(chunk);
      })
      .on('end', () => {
        this.#finish();
      })
      .on('error', lost)
      .on('close', lost);
    res.on('close', this.#onGone).on('drain', this.#onDrain);
    if (res.destroyed) this.#onGone();
  }

  get ended(): Promise<Relayed> {
    return this.#ended.promise;
  }

  #awaitUpstream(): NodeJS.Timeout {
    return setTimeout(() => {
      this.#settle('timeout');
    }, this.#options.timeout_ms);
  }

  #take(chunk: Buffer): void {
    this.#timer.refresh();
    const out = this.#options.take(chunk);
    if (this.#begun) {
      this.#write(out);
      return;
    }
    if (this.#options.decide !== null) {
      this.#bufferedBytes += out.length;
      if (this.#bufferedBytes <= HELD_BYTES_MAX) this.#buffered.push(out);
      else {
        this.#options.decide(null);
        this.#settle('withheld');
      }
      return;
    }
    if (!this.#options.streamed && this.#bufferedBytes + out.length <= BUFFERED_BYTES_MAX) {
      this.#buffered.push(out);
      this.#bufferedBytes += out.length;
      return;
    }
    this.#begun = true;
    this.#options.begin(null);
    for (const piece of this.#buffered) this.#write(piece);
    this.#buffered = [];
    this.#write(out);
  }

  #write(bytes: Buffer): void {
    if (bytes.length === 0 || this.#res.write(bytes) || this.#stalled) return;
    this.#stalled = true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#onGone, STALL_MS);
    this.#answer.pause();
  }

  readonly #onDrain = (): void => {
    if (!this.#stalled || this.#done) return;
    this.#stalled = false;
    clearTimeout(this.#timer);
    this.#timer = this.#awaitUpstream();
    this.#answer.resume();
  };

  readonly #onGone = (): void => {
    this.#settle('gone');
  };

  #finish(): void {
    if (this.#done || !this.#answer.complete) return;
    const last = this.#options.rest();
    if (!this.#begun) {
      const answer = Buffer.concat([...this.#buffered, last]);
      const whole = this.#options.decide === null ? answer : this.#options.decide(answer);
      if (whole === null) {
        this.#settle('withheld');
        return;
      }
      this.#begun = true;
      this.#options.begin(whole.length);
      this.#res.end(whole);
    } else if (last.length > 0) this.#res.end(last);
    else this.#res.end();
    this.#settle('complete');
  }

  #settle(ending: RelayEnding): void {
    if (this.#done) return;
    this.#done = true;
    clearTimeout(this.#timer);
    this.#res.off('close', this.#onGone).off('drain', this.#onDrain);
    if (ending !== 'complete') this.#request.destroy();
    this.#ended.resolve({ ending, begun: this.#begun });
  }
}
