// The load's client: each request goes to the next API process in service and is abandoned after a while; it
// has one of four outcomes.
import type { StackAddress } from './stack.ts';

/** Longest wait for an answer. */
const REQUEST_MS_MAX = 5000;

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  /** Number of the API process that answered, from 0. */
  api: number;
  /** performance.now() of its arrival. */
  at: number;
}

export class Client {
  readonly #address: StackAddress;

  constructor(address: StackAddress) {
    this.#address = address;
  }

  get address(): StackAddress {
    return this.#address;
  }

  /** Returns the answer; null when there was none, so that the request's effect is unknown. */
  async ask(
    method: string,
    path: string,
    options: { headers?: Record<string, string>; body?: string | Uint8Array; api?: number } = {},
  ): Promise<Answer | null> {
    const { traffic } = this.#address;
    const api = options.api ?? traffic.next();
    const answer = await this.#send(method, path, options, api);
    if (options.api === undefined) traffic.note(`${method} ${path}`, answer);
    return answer;
  }

  async #send(
    method: string,
    path: string,
    options: { headers?: Record<string, string>; body?: string | Uint8Array },
    api: number,
  ): Promise<Answer | null> {
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

  /**
   * Retries a request of a key or the operator until it succeeds. @throws Error when it is rejected
   * permanently
   */
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
          `${method} ${path}: ${answer === null ? 'no answer' : `${answer.status} ${answer.text.slice(0, 200)}`}`,
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
