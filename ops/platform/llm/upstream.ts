// The client of the OpenAI-compatible upstream, over the official openai package, for judges,
// dataset runs and replay. Takes a chat completion request; returns its answer, or a failure that
// says whether a later try can succeed. Guarantees: every attempt is bounded in time and its answer
// in bytes. Attempts are few, and spaced by what the upstream asks for or by a growing random wait.
// An abort takes effect at once. The client reads nothing from the environment and logs nothing.
import { setTimeout as sleep } from 'node:timers/promises';
import OpenAI, { APIError } from 'openai';

/** A request as the vendor's API defines it, never streamed. */
export type ChatRequest = Omit<OpenAI.ChatCompletionCreateParamsNonStreaming, 'stream'>;
export type ChatMessage = OpenAI.ChatCompletionMessageParam;

/** The answer of an upstream. */
export interface Completion {
  /** Text of the first choice; empty where it has none. */
  text: string;
  /** Null where the upstream does not report it. */
  usage: { input_tokens: number; output_tokens: number } | null;
  /** Model that answered, as the upstream names it; otherwise the requested model. */
  model: string;
  finish_reason: string | null;
  /** The unchanged answer. */
  raw: Readonly<Record<string, unknown>>;
}

export interface ChatAnswer extends Completion {
  /** Start and end of the attempt that was answered, in milliseconds since the epoch. */
  started_at: number;
  ended_at: number;
}

export interface ChatOptions {
  /** Ends the call and its waits; the call rejects with the signal's reason. */
  signal: AbortSignal;
  /** Maximum time of each attempt, in milliseconds. */
  timeoutMs: number;
}

export interface Upstream {
  /** @throws UpstreamFailed; the signal's reason when it was aborted */
  chat(request: ChatRequest, options: ChatOptions): Promise<ChatAnswer>;
}

/**
 * Why there is no answer. unavailable: a later call may succeed. refused: this request never
 * succeeds. unreadable: the upstream answered with success and something that is no chat
 * completion; one more attempt was made, and a third would cost as much again.
 */
export type UpstreamFailure = 'unavailable' | 'refused' | 'unreadable';

export class UpstreamFailed extends Error {
  readonly kind: UpstreamFailure;
  /** HTTP status of the last attempt; null where there was none. */
  readonly status: number | null;
  /** Time that the upstream asks callers to wait, in milliseconds; null where it does not say. */
  readonly retryAfterMs: number | null;

  constructor(
    kind: UpstreamFailure,
    message: string,
    given: { status?: number | null; retryAfterMs?: number | null; cause?: unknown } = {},
  ) {
    super(message, { cause: given.cause });
    this.name = 'UpstreamFailed';
    this.kind = kind;
    this.status = given.status ?? null;
    this.retryAfterMs = given.retryAfterMs ?? null;
  }
}

export interface UpstreamSettings {
  /** Base URL of the API, including /v1. Unset: there is no upstream. */
  base_url: string | undefined;
  /** API key. Unset: none is sent, as local upstreams accept. */
  api_key: string | undefined;
  /** Maximum number of retries; RETRIES_MAX by default. */
  retriesMax?: number;
  /** Called with the result of each attempt. */
  observe?: (result: TryResult, seconds: number) => void;
  /** Returns a number from 0 to 1 for the random waits. */
  random?: () => number;
}

/** Result of an attempt, for metrics. */
export type TryResult = 'answered' | 'rate_limited' | 'server_error' | 'no_answer' | 'refused' | 'aborted';

const RETRIES_MAX = 3;
/**
 * Maximum number of retries after an answer that is no chat completion: the upstream did its work
 * and charges for it.
 */
const UNREADABLE_RETRIES_MAX = 1;
const FIRST_WAIT_MS = 500;
/**
 * Maximum wait between two attempts. When an upstream asks for more, the call fails and its
 * caller's queue retries later.
 */
const WAIT_MS_MAX = 10_000;
/** Maximum size of an answer; the largest completions are far smaller. */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024;
/** Maximum characters of an upstream's error that are shown to people. */
const DETAIL_CHARS_MAX = 500;

/** Returns the client of the settings' upstream; null where none is set. */
export function openUpstream(settings: UpstreamSettings): Upstream | null {
  const { base_url, api_key, retriesMax = RETRIES_MAX, observe = () => undefined, random = Math.random } = settings;
  if (base_url === undefined) return null;
  const client = new OpenAI({
    baseURL: base_url,
    apiKey: api_key ?? 'none',
    // Set explicitly, because the package would read them from the environment.
    organization: null,
    project: null,
    adminAPIKey: null,
    webhookSecret: null,
    defaultHeaders: api_key === undefined ? { Authorization: null } : {},
    maxRetries: 0,
    logLevel: 'off',
    fetch: boundedFetch,
  });
  const once = (request: ChatRequest, options: ChatOptions) => tryOnce(client, request, options, observe);
  return {
    async chat(request, options) {
      let unreadable = 0;
      for (let retry = 0; ; retry++) {
        try {
          return await once(request, options);
        } catch (error) {
          if (error instanceof UpstreamFailed && error.kind === 'unreadable') unreadable++;
          const mayRetry = retry < retriesMax && unreadable <= UNREADABLE_RETRIES_MAX;
          const wait = error instanceof UpstreamFailed && mayRetry ? waitMs(error, retry, random) : null;
          if (wait === null) throw error;
          await abortable(sleep(wait, undefined, { signal: options.signal }), options.signal);
        }
      }
    },
  };
}

/**
 * Returns the milliseconds until the next attempt. Null: there is none, because it cannot succeed
 * or the upstream asks for a longer wait than a call makes.
 */
function waitMs({ kind, retryAfterMs }: UpstreamFailed, retry: number, random: () => number): number | null {
  if (kind === 'refused') return null;
  const ceiling = Math.min(WAIT_MS_MAX, FIRST_WAIT_MS * 2 ** retry);
  const jittered = ceiling / 2 + random() * (ceiling / 2);
  if (retryAfterMs === null) return jittered;
  return retryAfterMs > WAIT_MS_MAX ? null : Math.max(retryAfterMs, Math.min(jittered, FIRST_WAIT_MS));
}

async function tryOnce(
  client: OpenAI,
  request: ChatRequest,
  { signal, timeoutMs }: ChatOptions,
  observe: (result: TryResult, seconds: number) => void,
): Promise<ChatAnswer> {
  signal.throwIfAborted();
  const started_at = Date.now();
  const began = performance.now();
  const seconds = () => (performance.now() - began) / 1000;
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    const completion = await client.chat.completions.create(
      { ...request, stream: false },
      // The package's own timeout covers the headers only; the signal covers the body too.
      { signal: AbortSignal.any([signal, timeout]), timeout: timeoutMs + 1000 },
    );
    const answer = { ...readCompletion(completion, request.model), started_at, ended_at: Date.now() };
    observe('answered', seconds());
    return answer;
  } catch (error) {
    if (signal.aborted) {
      observe('aborted', seconds());
      throw signal.reason;
    }
    const failure = timeout.aborted
      ? new UpstreamFailed('unavailable', `the upstream did not answer within ${timeoutMs} ms`, {
          cause: error,
        })
      : failureOf(error);
    observe(resultOf(failure), seconds());
    throw failure;
  }
}

/**
 * Reads a chat completion.
 * @param asked the requested model
 * @throws UpstreamFailed when the value is no chat completion
 */
export function readCompletion(completion: unknown, asked: string): Completion {
  if (!isFields(completion) || !Array.isArray(completion['choices']))
    throw new UpstreamFailed('unreadable', 'the upstream answered with something that is no chat completion', {
      status: 200,
    });
  const choice: unknown = completion['choices'][0];
  const message = isFields(choice) ? choice['message'] : undefined;
  const content = isFields(message) ? message['content'] : undefined;
  const reason = isFields(choice) ? choice['finish_reason'] : undefined;
  const { model, usage } = completion;
  return {
    text: typeof content === 'string' ? content : '',
    usage: isFields(usage)
      ? { input_tokens: tokens(usage['prompt_tokens']), output_tokens: tokens(usage['completion_tokens']) }
      : null,
    model: typeof model === 'string' && model !== '' ? model : asked,
    finish_reason: typeof reason === 'string' ? reason : null,
    raw: completion,
  };
}

function failureOf(error: unknown): UpstreamFailed {
  if (error instanceof UpstreamFailed) return error;
  // The package checks the status before it parses a body that is declared as JSON, so this answer
  // had a success status.
  if (error instanceof SyntaxError)
    return new UpstreamFailed('unreadable', 'the upstream answered with something that is no JSON', {
      status: 200,
      cause: error,
    });
  const message = (error instanceof Error ? error.message : String(error)).slice(0, DETAIL_CHARS_MAX);
  const status: unknown = error instanceof APIError ? error.status : undefined;
  if (typeof status !== 'number')
    return new UpstreamFailed('unavailable', `the upstream cannot be reached: ${message}`, { cause: error });
  // The upstream's own text is about the operator's key, and this message goes to the organization
  // whose traces are judged.
  if (status === 401 || status === 403)
    return new UpstreamFailed('refused', `the upstream refuses the key of this service (${status})`, {
      status,
      cause: error,
    });
  if (status >= 300 && status < 400)
    return new UpstreamFailed('refused', `the upstream answered with a redirect (${status}), which is not followed`, {
      status,
      cause: error,
    });
  const later = status === 408 || status === 429 || status >= 500;
  const retryAfterMs = error instanceof APIError ? retryAfter(error.headers as Headers | undefined) : null;
  return new UpstreamFailed(later ? 'unavailable' : 'refused', `the upstream answered ${message}`, {
    status,
    retryAfterMs,
    cause: error,
  });
}

/**
 * Returns the wait of a Retry-After header, which RFC 9110 allows as seconds or as a date; null
 * where none can be read.
 */
function retryAfter(headers: Headers | undefined): number | null {
  const text = headers?.get('retry-after') ?? null;
  if (text === null) return null;
  const ms = /^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : null;
}

function resultOf({ kind, status }: UpstreamFailed): TryResult {
  if (kind === 'refused') return 'refused';
  if (kind === 'unreadable') return 'no_answer';
  if (status === 429) return 'rate_limited';
  return status !== null && status >= 400 ? 'server_error' : 'no_answer';
}

/** Makes an aborted wait reject with the signal's reason, as an attempt does. */
async function abortable(wait: Promise<unknown>, signal: AbortSignal): Promise<void> {
  try {
    await wait;
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}

/**
 * fetch with two bounds: an answer that is too large ends in an error, and a redirect is not
 * followed. Following one would send the operator's key and an organization's texts to an address
 * that no setting names.
 */
const boundedFetch: typeof fetch = async (input, init) => {
  const response = await fetch(input, { ...init, redirect: 'manual' });
  if (response.body === null) return response;
  let bytes = 0;
  const bounded = response.body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        bytes += chunk.byteLength;
        if (bytes > ANSWER_BYTES_MAX)
          controller.error(new UpstreamFailed('refused', `the upstream's answer exceeds ${ANSWER_BYTES_MAX} bytes`));
        else controller.enqueue(chunk);
      },
    }),
  );
  return new Response(bounded, { status: response.status, statusText: response.statusText, headers: response.headers });
};

function tokens(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0;
}

function isFields(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
