// One request to one upstream. Takes a target and a request; returns the head of the answer, whose
// bytes then pass to one reader, or how the request failed. Nothing is sent twice: undici sends a
// request on one connection, and reports a connection that breaks off as an error. It takes half the
// CPU time of node:http for a call, which is most of the time that the gateway adds to one.
import type { ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { Agent as UndiciAgent, Dispatcher } from 'undici';
import type { GatewayTarget } from '../../../ops/platform/llm/routes.ts';

/**
 * Milliseconds after which an idle connection is not reused. Common servers close theirs after 5 s,
 * and a request sent into a closing one is lost.
 */
const IDLE_SOCKET_MS = 4000;
/** Bytes of an answer that are kept until it has a reader; the connection then waits. */
const EARLY_BYTES_MAX = 256 * 1024;

const load = createRequire(import.meta.url);
let agent: UndiciAgent | null = null;

/**
 * Returns the agent of all requests: one request at a time on each connection, and no time limits but
 * those of ask(). The first call loads it: the dispatcher alone, because all of undici takes 0.1 s and
 * 30 MB.
 */
function theAgent(): UndiciAgent {
  if (agent !== null) return agent;
  const Agent = load('undici/lib/dispatcher/agent.js') as typeof UndiciAgent;
  agent = new Agent({
    pipelining: 1,
    keepAliveTimeout: IDLE_SOCKET_MS,
    keepAliveMaxTimeout: IDLE_SOCKET_MS,
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: 0 },
  });
  return agent;
}

export interface Asked {
  method: 'GET' | 'POST';
  /** Path below the base URL, with its query. */
  path: string;
  headers: Record<string, string | string[]>;
  body: Buffer | null;
}

/** An answer has begun, or the request has failed. */
export type Begun =
  { answer: UpstreamAnswer; failed: null } | { answer: null; failed: 'lost' | 'timeout' | 'gone'; cause: unknown };

/** Takes the bytes of an answer. Of end and lost, exactly one is called, unless the answer is aborted. */
export interface AnswerTaker {
  data: (chunk: Buffer) => void;
  end: () => void;
  lost: () => void;
}

const NOTHING: AnswerTaker = { data: () => undefined, end: () => undefined, lost: () => undefined };

/** An answer whose head has arrived. Its bytes wait until passTo() names their reader. */
export class UpstreamAnswer {
  readonly status: number;
  /** Names and values in turn, as they were sent, in latin1. */
  readonly rawHeaders: readonly string[];
  readonly #controller: Dispatcher.DispatchController;
  #taker: AnswerTaker | null = null;
  #early: Buffer[] = [];
  #earlyBytes = 0;
  #ended: 'end' | 'lost' | null = null;
  /** True while the reader takes no more. */
  #paused = false;

  constructor(status: number, controller: Dispatcher.DispatchController) {
    this.status = status;
    this.#controller = controller;
    this.rawHeaders = Array.isArray(controller.rawHeaders) ? controller.rawHeaders.map(latin1) : [];
  }

  /** Returns the value of a header; undefined where it was not sent. Several values are joined with commas. */
  header(name: string): string | undefined {
    let found: string | undefined;
    for (let i = 0; i < this.rawHeaders.length; i += 2) {
      if (this.rawHeaders[i]?.toLowerCase() !== name) continue;
      const value = this.rawHeaders[i + 1] ?? '';
      found = found === undefined ? value : `${found}, ${value}`;
    }
    return found;
  }

  /** Passes the bytes to their reader: those that have arrived at once, the others as they arrive. */
  passTo(taker: AnswerTaker): void {
    this.#taker = taker;
    for (const chunk of this.#early) this.#taker.data(chunk);
    this.#early = [];
    if (this.#ended !== null) this.#taker[this.#ended]();
    else if (this.#earlyBytes > EARLY_BYTES_MAX && !this.#paused) this.#controller.resume();
  }

  /** Ends the request. Nothing more is passed on. */
  abort(): void {
    this.#taker = NOTHING;
    this.#early = [];
    if (this.#ended === null) this.#controller.abort(new Error('the answer is not wanted any more'));
  }

  pause(): void {
    this.#paused = true;
    this.#controller.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#controller.resume();
  }

  /** Takes a piece from the connection. */
  arrived(chunk: Buffer): void {
    if (this.#taker !== null) {
      this.#taker.data(chunk);
      return;
    }
    this.#early.push(chunk);
    this.#earlyBytes += chunk.length;
    if (this.#earlyBytes > EARLY_BYTES_MAX) this.#controller.pause();
  }

  /** Takes the end of the answer, or that the connection broke off. */
  ended(how: 'end' | 'lost'): void {
    if (this.#ended !== null) return;
    this.#ended = how;
    this.#taker?.[how]();
  }
}

const latin1 = (text: Buffer | string): string => (typeof text === 'string' ? text : text.toString('latin1'));

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
    /** Null until the request has a connection. */
    let controller: Dispatcher.DispatchController | null = null;
    let answer: UpstreamAnswer | null = null;
    let isSettled = false;
    /** Takes the first outcome. */
    const settle = (begun: Begun) => {
      if (isSettled) return;
      isSettled = true;
      clearTimeout(timer);
      res.off('close', onGone);
      resolve(begun);
    };
    const giveUp = (failed: 'timeout' | 'gone') => {
      settle({ answer: null, failed, cause: null });
      controller?.abort(new Error('the caller is gone, or the upstream is silent'));
    };
    const onGone = () => {
      giveUp('gone');
    };
    const timer = setTimeout(() => {
      giveUp('timeout');
    }, timeout_ms);
    res.on('close', onGone);
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart: (started) => {
        controller = started;
        if (isSettled) started.abort(new Error('the request was given up before it had a connection'));
      },
      onResponseStart: (started, status) => {
        // Heads below 200 announce the answer.
        if (status < 200 || isSettled) return;
        answer = new UpstreamAnswer(status, started);
        settle({ answer, failed: null });
      },
      onResponseData: (_, chunk) => {
        answer?.arrived(chunk);
      },
      onResponseEnd: () => {
        answer?.ended('end');
      },
      onResponseError: (_, cause) => {
        if (answer !== null) answer.ended('lost');
        else settle({ answer: null, failed: 'lost', cause });
      },
    };
    const prefix = base_url.pathname === '/' ? '' : base_url.pathname;
    try {
      theAgent().dispatch({ origin: base_url.origin, path: prefix + path, method, headers, body }, handler);
    } catch (cause) {
      settle({ answer: null, failed: 'lost', cause });
    }
    if (res.destroyed) onGone();
  });
}
