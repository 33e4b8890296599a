// One request to one upstream, and its answer's way to the caller: bytes as they come, at the pace of whoever is slower.
// Guarantees: nothing is sent twice; an upstream that is silent for its timeout, and a caller that reads nothing for STALL_MS, end
// the exchange; nothing goes to the caller before the first bytes of the answer are there, so that another upstream can still be
// asked; a short answer goes out only when it is whole.
import {
  Agent as HttpAgent,
  type ClientRequest,
  type IncomingMessage,
  request as httpRequest,
  type ServerResponse,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { GatewayTarget } from '../../../ops/platform/llm/routes.ts';

/** A connection that nothing was sent on for this long is not used again: common servers close theirs after 5 s, and what is sent into a closing one is lost. */
const IDLE_SOCKET_MS = 4000;
const IDLE_SOCKETS_MAX = 256;
/** A caller that takes nothing for this long is taken for gone. */
const STALL_MS = 120_000;
/** An answer that is no stream is held back until it is whole, up to here. */
const HELD_BYTES_MAX = 256 * 1024;

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

/** How an exchange ended. lost: the upstream broke off or never answered; gone: the caller did. */
export type Ending = 'complete' | 'lost' | 'timeout' | 'gone';

export interface Asked {
  method: 'GET' | 'POST';
  /** Under the base URL, with its query. */
  path: string;
  headers: Record<string, string | string[]>;
  body: Buffer | null;
}

/** An answer has begun, or there is none. */
export type Begun =
  | { answer: IncomingMessage; failed: null; request: ClientRequest }
  | { answer: null; failed: 'lost' | 'timeout' | 'gone'; cause: unknown };

/** Asks an upstream; resolves with the head of its answer. `res` is the caller's: when it closes, nobody waits any more. */
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
      // IPv6 addresses stand in brackets in URLs only.
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
    // After an answer has begun its own stream tells of errors.
    request.on('error', (cause) => {
      settle({ answer: null, failed: 'lost', cause });
    });
    request.end(body ?? undefined);
    if (res.destroyed) onGone();
  });
}

export interface RelayOptions {
  timeout_ms: number;
  /** Whether it is passed on piece by piece from its first bytes. */
  streamed: boolean;
  /** Sends the head; called once, before the first byte, with the length where the whole body is known. */
  begin: (length: number | null) => void;
  /** Takes the bytes of the answer, gives those that go to the caller. */
  take: (chunk: Buffer) => Buffer;
  /** What goes to the caller when the answer is whole. */
  rest: () => Buffer;
}

/** Passes an answer on. Resolves when it has ended and all of it was handed to the connection; `begun` says whether the caller got any of it. */
export function relay(
  answer: IncomingMessage,
  request: ClientRequest,
  res: ServerResponse,
  options: RelayOptions,
): Promise<{ ending: Ending; begun: boolean }> {
  const { timeout_ms, streamed, begin, take, rest } = options;
  return new Promise((resolve) => {
    let begun = false;
    let done = false;
    let held: Buffer[] = [];
    let heldBytes = 0;
    const settle = (ending: Ending) => {
      if (done) return;
      done = true;
      clearTimeout(timer);
      res.off('close', onGone).off('drain', onDrain);
      if (ending !== 'complete') request.destroy();
      resolve({ ending, begun });
    };
    const onGone = () => {
      settle('gone');
    };
    const silent = () => {
      settle('timeout');
    };
    let timer = setTimeout(silent, timeout_ms);
    let stalled = false;
    const onDrain = () => {
      if (!stalled || done) return;
      stalled = false;
      clearTimeout(timer);
      timer = setTimeout(silent, timeout_ms);
      answer.resume();
    };
    const write = (bytes: Buffer) => {
      if (bytes.length === 0 || res.write(bytes) || stalled) return;
      stalled = true;
      clearTimeout(timer);
      timer = setTimeout(onGone, STALL_MS);
      answer.pause();
    };
    answer.on('data', (chunk: Buffer) => {
      timer.refresh();
      const out = take(chunk);
      if (begun) {
        write(out);
        return;
      }
      if (!streamed && heldBytes + out.length <= HELD_BYTES_MAX) {
        held.push(out);
        heldBytes += out.length;
        return;
      }
      begun = true;
      begin(null);
      for (const piece of held) write(piece);
      held = [];
      write(out);
    });
    answer.on('end', () => {
      if (done || !answer.complete) return;
      const last = rest();
      if (!begun) {
        begun = true;
        const whole = Buffer.concat([...held, last]);
        begin(whole.length);
        res.end(whole);
      } else if (last.length > 0) res.end(last);
      else res.end();
      settle('complete');
    });
    answer.on('error', () => {
      settle('lost');
    });
    answer.on('close', () => {
      settle('lost');
    });
    res.on('close', onGone).on('drain', onDrain);
    if (res.destroyed) onGone();
  });
}
