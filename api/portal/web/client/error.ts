// The one error type of the portal. Every failed request becomes it: an answer of the API with its
// code, and a request that brought no answer with the code `network`. Pure.

/** Fields of an error body of the API. */
interface ErrorBody {
  detail: string;
  request_id: string | null;
  code: string;
}

/** Status of a request that brought no answer. */
export const NO_ANSWER = 0;

export class RequestError extends Error {
  /** HTTP status; 0 when there was no answer. */
  readonly status: number;
  /** Error code of the API, or `network`. */
  readonly code: string;
  readonly detail: string;
  readonly request_id: string | null;
  /** Seconds to wait before a retry; null when the answer named none. */
  readonly retry_after: number | null;

  constructor(status: number, body: ErrorBody, retry_after: number | null = null) {
    super(body.detail);
    this.name = 'RequestError';
    this.status = status;
    this.code = body.code;
    this.detail = body.detail;
    this.request_id = body.request_id;
    this.retry_after = retry_after;
  }
}

/**
 * Returns the error of an answer that is not a success.
 * @param body parsed body; anything but an error of the API becomes a text with the status
 * @param headers X-Request-Id and Retry-After are read from it
 */
export function errorOfAnswer(status: number, body: unknown, headers: Pick<Headers, 'get'>): RequestError {
  const retryAfter = Number(headers.get('retry-after') ?? Number.NaN);
  const after = Number.isFinite(retryAfter) && retryAfter >= 0 ? retryAfter : null;
  const request_id = headers.get('x-request-id');
  const read = isErrorBody(body)
    ? body
    : { detail: `The service answered with status ${status}.`, code: `http_${status}`, request_id };
  return new RequestError(
    status,
    { ...read, detail: inSeconds(read.detail, after), request_id: read.request_id ?? request_id },
    after,
  );
}

/** Returns a detail with the seconds of Retry-After in place of its name: people do not see headers. */
function inSeconds(detail: string, after: number | null): string {
  return after === null ? detail : detail.replace('the number of seconds in Retry-After', `${after} s`);
}

/** Returns the error for whatever a request threw. An aborted request stays what it is. */
export function errorOfThrown(thrown: unknown): unknown {
  if (thrown instanceof RequestError || isAbort(thrown)) return thrown;
  const why = thrown instanceof Error ? thrown.message : String(thrown);
  return new RequestError(NO_ANSWER, {
    code: 'network',
    detail: `The service did not answer: ${why}. Check that it runs and that this machine reaches it.`,
    request_id: null,
  });
}

/** Returns true for the error of a request that was cancelled. */
export function isAbort(thrown: unknown): boolean {
  return thrown instanceof Error && thrown.name === 'AbortError';
}

function isErrorBody(body: unknown): body is ErrorBody {
  if (typeof body !== 'object' || body === null) return false;
  return 'detail' in body && typeof body.detail === 'string' && 'code' in body && typeof body.code === 'string';
}
