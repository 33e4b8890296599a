// Client of the service's API like that of an SDK: keys in headers, bounded retries, Retry-After
// honoured. Takes paths and bodies; returns the data and meta of answers. Throws ServiceError with
// one line for the user when it gives up.

export interface ServiceAddress {
  url: string;
  org: string;
  key: string;
}

/**
 * The service rejected the request or could not be reached; the message is one line. `status` is 0
 * when there was no answer.
 */
export class ServiceError extends Error {
  readonly status: number;

  constructor(status: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

export interface Answer {
  data: unknown;
  meta: Record<string, unknown>;
}

const ATTEMPTS_MAX = 8;
const BACKOFF_FIRST_MS = 100;
const BACKOFF_MAX_MS = 5000;
/** Maximum Retry-After that a demonstration waits for. */
const RETRY_AFTER_MAX_MS = 60_000;
const REQUEST_TIMEOUT_MS = 30_000;

const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

export class ServiceClient {
  readonly #address: ServiceAddress;
  /** Number of retried requests. */
  retries = 0;

  constructor(address: ServiceAddress) {
    this.#address = address;
  }

  /** Sends an event or a batch, with retries while the service is busy or unavailable. */
  async ingest(format: string, body: unknown): Promise<void> {
    await this.#send('POST', `/orgs/${this.#address.org}/ingest/${format}`, JSON.stringify(body));
  }

  /** Sends a request that may be repeated: the service answers the same thing twice with one result. */
  post(path: string, body: unknown): Promise<Answer> {
    return this.#send('POST', path, JSON.stringify(body));
  }

  get(path: string): Promise<Answer> {
    return this.#send('GET', path, null);
  }

  async #send(method: string, path: string, body: string | null): Promise<Answer> {
    for (let attempt = 1; ; attempt += 1) {
      const outcome = await this.#once(method, path, body);
      if (!(outcome instanceof ServiceError)) return outcome.answer;
      const wait = retryWaitMs(outcome, attempt);
      if (wait === null) throw outcome;
      this.retries += 1;
      await pause(wait);
    }
  }

  async #once(method: string, path: string, body: string | null): Promise<{ answer: Answer } | RefusedError> {
    const { url, org, key } = this.#address;
    let response: Response;
    let text: string;
    try {
      response = await fetch(url + path, {
        method,
        headers: {
          'X-Org-Api-Key': key,
          'X-Org-Id': org,
          ...(body === null ? {} : { 'Content-Type': 'application/json' }),
        },
        body,
        signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
      });
      text = await response.text();
    } catch (error) {
      return new RefusedError(0, `${url} does not answer: ${reasonOf(error)}`, null, { cause: error });
    }
    if (response.ok) return { answer: JSON.parse(text) as Answer };
    return new RefusedError(
      response.status,
      `${method} ${path.split('?')[0] ?? path}: ${response.status} ${detailOf(text)}`,
      response.headers.get('retry-after'),
    );
  }
}

class RefusedError extends ServiceError {
  readonly retryAfter: string | null;

  constructor(status: number, message: string, retryAfter: string | null, options?: ErrorOptions) {
    super(status, message, options);
    this.retryAfter = retryAfter;
  }
}

/** Returns the pause before the next attempt in milliseconds; null to give up. */
function retryWaitMs({ status, retryAfter }: RefusedError, attempt: number): number | null {
  if (attempt >= ATTEMPTS_MAX || (status !== 0 && status !== 429 && status < 502)) return null;
  const asked = Number(retryAfter ?? '') * 1000;
  if (asked > RETRY_AFTER_MAX_MS) return null;
  const backoff = Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** (attempt - 1));
  return Math.max(asked, backoff * (0.5 + Math.random() / 2));
}

function reasonOf(error: unknown): string {
  const { cause } = error as { cause?: unknown };
  if (cause instanceof Error) return 'code' in cause ? String(cause.code) : cause.message;
  return error instanceof Error ? error.message : String(error);
}

function detailOf(text: string): string {
  try {
    const body = JSON.parse(text) as { code?: unknown; detail?: unknown };
    return `${String(body.code)}: ${String(body.detail)}`;
  } catch {
    return text.slice(0, 200);
  }
}
