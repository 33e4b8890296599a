// How the load talks to the service: each request goes to the next API, and is given up after a while; what came of it is one of four things.
import type { StackAddress } from './stack.ts';

/** Longest that an answer is waited for. */
const REQUEST_MS_MAX = 5000;

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  /** Which API answered, from 0. */
  api: number;
  /** performance.now() of when it was there. */
  at: number;
}

export class Client {
  readonly #address: StackAddress;
  #turn = 0;

  constructor(address: StackAddress) {
    this.#address = address;
  }

  get address(): StackAddress {
    return this.#address;
  }

  /** The answer; null where there was none, so that nobody knows what became of the request. */
  async ask(
    method: string,
    path: string,
    options: { headers?: Record<string, string>; body?: string | Uint8Array; api?: number } = {},
  ): Promise<Answer | null> {
    this.#turn += 1;
    const api = options.api ?? this.#turn % this.#address.urls.length;
    try {
      const response = await fetch(`${this.#address.urls[api] ?? ''}${path}`, {
        method,
        headers: { 'Content-Type': 'application/json', ...options.headers },
        ...(options.body === undefined ? {} : { body: options.body as string | Uint8Array<ArrayBuffer> }),
        signal: AbortSignal.timeout(REQUEST_MS_MAX),
      });
      return {
        status: response.status,
        headers: response.headers,
        text: await response.text(),
        api,
        at: performance.now(),
      };
    } catch {
      return null;
    }
  }

  /** What a key or the operator may do, tried until it is done. @throws Error when it is refused for good */
  async must(
    method: string,
    path: string,
    headers: Record<string, string>,
    body: unknown,
    good: readonly number[] = [200, 201],
  ): Promise<unknown> {
    for (let tries = 0; ; tries += 1) {
      const answer = await this.ask(method, path, {
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      if (answer !== null && good.includes(answer.status)) return JSON.parse(answer.text) as unknown;
      const refused = answer !== null && answer.status < 500 && answer.status !== 429;
      if (refused || tries >= MUST_TRIES_MAX)
        throw new Error(
          `${method} ${path}: ${answer === null ? 'no answer' : `${String(answer.status)} ${answer.text.slice(0, 200)}`}`,
        );
      await pause(MUST_RETRY_MS);
    }
  }
}

const MUST_TRIES_MAX = 600;
const MUST_RETRY_MS = 200;

export const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
