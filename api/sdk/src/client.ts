// A client of the service's HTTP API: scores, prompts, datasets, analytics, and any other read.
import { randomUUID } from 'node:crypto';
import type { components, operations } from './contract.ts';
import { MillraceError } from './errors.ts';
import { PromptCache, type Prompt, type PromptBy } from './prompts.ts';
import { isTransient, waitFor, waitMs } from './retry.ts';

const DEFAULT_URL = 'http://127.0.0.1:8080';
const RETRIES = 3;
const TIMEOUT_MS = 30_000;
const PAGE = 200;

type Schemas = components['schemas'];
type BodyOf<O extends 'runDataset' | 'queryAnalytics'> = operations[O]['requestBody']['content']['application/json'];

export interface ScoreInput {
  name: string;
  value: number | boolean | string;
  comment?: string;
  /** 32 hexadecimal digits of an OpenTelemetry trace, or the trace id that the service knows. */
  traceId?: string;
  spanId?: string;
}

/** A score as the service has stored it; `pending` is true while its trace has not arrived. */
export type Score = Schemas['GivenScore'];

export type DatasetItem = Schemas['DatasetItem'];

/** Fields of POST /v1/datasets/{dataset_id}/run. */
export type DatasetRun = BodyOf<'runDataset'>;

export type Eval = Schemas['Eval'];

/** A query of POST /v1/analytics/query; GET /v1/analytics/schema lists its fields. */
export type AnalyticsQuery = BodyOf<'queryAnalytics'>;

export type AnalyticsResult = operations['queryAnalytics']['responses'][200]['content']['application/json'];

export interface ClientOptions {
  /** Default: MILLRACE_URL, else http://127.0.0.1:8080. */
  url?: string;
  /** Default: MILLRACE_API_KEY. */
  apiKey?: string;
  /** Repetitions after 408, 429, 5xx and lost connections. Default: 3. */
  maxRetries?: number;
  /** Bound of one try. Default: 30,000. */
  timeoutMs?: number;
}

/** Query parameters; those that are undefined are left out. */
export type Query = Record<string, string | number | boolean | undefined>;

export interface RequestOptions {
  query?: Query;
  /** Sent as JSON. A text or bytes are sent as they are, with the content type of `headers`. */
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Bound of one try, milliseconds; 0 is none. Default: that of the client. */
  timeoutMs?: number;
  /** True: waits between tries do not keep the process alive. */
  isBackground?: boolean;
}

/** Returns the address without the slash at its end. */
export const serviceUrl = (url?: string): string =>
  (url ?? process.env['MILLRACE_URL'] ?? DEFAULT_URL).replace(/\/$/, '');

/** Asks the service, again after transient failures. @throws MillraceError of every method */
export class MillraceClient {
  readonly url: string;
  readonly #options: ClientOptions;
  readonly #prompts = new PromptCache();

  constructor(options: ClientOptions = {}) {
    this.url = serviceUrl(options.url);
    this.#options = options;
  }

  /** Scores a trace, or one of its spans. The trace may arrive later, within 24 hours. */
  async score(
    { traceId, spanId, name, value, comment }: ScoreInput & { traceId: string },
    options: Pick<RequestOptions, 'isBackground' | 'signal'> = {},
  ): Promise<Score> {
    const { data } = await this.request<{ data: Score }>('POST', '/v1/scores', {
      ...options,
      body: {
        trace_id: traceId,
        name,
        value,
        ...(spanId === undefined || spanId === '' ? {} : { span_id: spanId }),
        ...(comment === undefined ? {} : { comment }),
      },
    });
    return data;
  }

  /**
   * Returns a prompt, by default its newest version. It is kept for `cacheSeconds` (60); after that
   * it is still returned while a newer one is fetched, and when the service is away.
   */
  prompt(name: string, by: PromptBy = {}, cacheSeconds = 60): Promise<Prompt> {
    return this.#prompts.get(`${name}\n${by.version ?? ''}\n${by.label ?? ''}`, cacheSeconds, () =>
      this.get<{ data: Prompt }>(`/v1/prompts/${encodeURIComponent(name)}`, { ...by }).then(({ data }) => data),
    );
  }

  dataset(id: string): {
    items(): AsyncIterable<DatasetItem>;
    run(options: DatasetRun): Promise<Eval>;
  } {
    return {
      items: () => this.#pages<DatasetItem>(`/v1/datasets/${encodeURIComponent(id)}/items`),
      run: async (options) => {
        const path = `/v1/datasets/${encodeURIComponent(id)}/run`;
        const { data } = await this.request<{ data: Eval }>('POST', path, { body: options });
        return data;
      },
    };
  }

  analytics(query: AnalyticsQuery): Promise<AnalyticsResult> {
    return this.request('POST', '/v1/analytics/query', { body: query });
  }

  /** Reads any path of the API. @returns the answer with its `data` and `meta` */
  get<T>(path: string, query?: Query): Promise<T> {
    return this.request('GET', path, query === undefined ? {} : { query });
  }

  /** Sends a request with a JSON body. @returns the answer with its `data` and `meta` */
  async request<T>(method: string, path: string, options: RequestOptions = {}): Promise<T> {
    const answer = await this.ask(method, path, options);
    return (answer.status === 204 ? undefined : await answer.json()) as T;
  }

  /** Sends a request. @returns the answer, whose status is one of success, with its body unread */
  async ask(method: string, path: string, options: RequestOptions = {}): Promise<Response> {
    const { query = {}, body, signal } = options;
    const address = new URL(this.url + path);
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) address.searchParams.set(name, String(value));
    const isRaw = typeof body === 'string' || body instanceof Uint8Array;
    const sent = {
      method,
      headers: { ...this.#headers(body !== undefined, method), ...options.headers },
      body: body === undefined ? null : isRaw ? (body as string) : JSON.stringify(body),
    };
    const { maxRetries = RETRIES } = this.#options;
    for (let tries = 1; ; tries += 1) {
      const last = tries > maxRetries;
      const answer = await this.#try(address, sent, options).catch((error: unknown) => {
        if (last || signal?.aborted === true) throw error;
        return null;
      });
      if (answer?.ok === true) return answer;
      if (answer !== null && (last || !mayRetry(answer))) throw await errorOf(answer, method, address);
      await answer?.body?.cancel();
      const ms = waitMs(tries, answer?.headers.get('retry-after') ?? null);
      await waitFor(ms, signal, { ref: options.isBackground !== true });
    }
  }

  #headers(hasBody: boolean, method: string): Record<string, string> {
    const apiKey = this.#options.apiKey ?? process.env['MILLRACE_API_KEY'];
    return {
      accept: 'application/json',
      ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
      ...(hasBody ? { 'content-type': 'application/json' } : {}),
      // A repeated request has the same key, so that it takes effect once.
      ...(method === 'POST' ? { 'idempotency-key': randomUUID() } : {}),
    };
  }

  async #try(address: URL, init: RequestInit, { signal, timeoutMs }: RequestOptions): Promise<Response> {
    const ms = timeoutMs ?? this.#options.timeoutMs ?? TIMEOUT_MS;
    const signals = [signal, ms === 0 ? undefined : AbortSignal.timeout(ms)].filter((one) => one !== undefined);
    try {
      return await fetch(address, { ...init, ...(signals.length === 0 ? {} : { signal: AbortSignal.any(signals) }) });
    } catch (cause) {
      const reason = cause instanceof Error ? (cause.cause instanceof Error ? cause.cause.message : cause.message) : '';
      throw new MillraceError(`the service at ${this.url} does not answer: ${reason}`, { cause });
    }
  }

  async *#pages<T>(path: string): AsyncGenerator<T> {
    for (let offset = 0; ; offset += PAGE) {
      const { data } = await this.get<{ data: T[] }>(path, { limit: PAGE, offset });
      yield* data;
      if (data.length < PAGE) return;
    }
  }
}

/** Seconds of Retry-After beyond which a request fails at once: a budget may open in days. */
const RETRY_AFTER_MAX = 60;

const mayRetry = ({ status, headers }: Response): boolean =>
  isTransient(status) && !(Number(headers.get('retry-after')) > RETRY_AFTER_MAX);

/** Returns the error that the service describes in its answer. */
async function errorOf(answer: Response, method: string, address: URL): Promise<MillraceError> {
  const text = await answer.text().catch(() => '');
  let said: { code?: string; detail?: string; error?: { code?: string; message?: string; detail?: string } } = {};
  try {
    said = JSON.parse(text) as typeof said;
  } catch {
    // The answer is of a proxy in between.
  }
  const detail = said.error?.detail ?? said.error?.message ?? said.detail ?? text.slice(0, 200);
  const code = said.error?.code ?? said.code;
  return new MillraceError(`${method} ${address.pathname}: ${answer.status} ${detail}`, {
    status: answer.status,
    ...(code === undefined ? {} : { code }),
  });
}
