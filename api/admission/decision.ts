// The outcome of an admission check: admit, reject, or wait for one of the two. Checks return
// decisions and throw nothing; admission_request.ts turns a rejection into the error that the
// client receives.
import { ApiError, type ErrorCode } from '../http/errors.ts';

type Headers = Readonly<Record<string, string>>;

/** A reservation that an admitting check has made for a request. */
export interface Reservation {
  /**
   * Reports that the ingest log holds the request's events: what is reserved for them stays until
   * they have landed.
   * @param positions position of the last message with events of the request, by
   * partition
   */
  confirm?: (positions: ReadonlyMap<number, number>) => void;
  /** Releases what is reserved and not confirmed. Further calls do nothing. */
  release: () => void;
}

export interface Admit {
  kind: 'admit';
  /** RateLimit-* headers of the response, sent however the request ends. */
  limit_headers: Headers;
  /** Null: the check reserved nothing. */
  reservation: Reservation | null;
}

export interface Reject {
  kind: 'reject';
  code: ErrorCode;
  detail: string;
  /** Null: the error has no Retry-After of its own. */
  retry_after_seconds: number | null;
  /** Further headers of the error. */
  headers: Headers;
  /** The same as in Admit; Retry-After is among them where a rate limit rejects. */
  limit_headers: Headers;
}

/** A decision that takes time: the request waits for its turn, or another process decides. */
export interface Wait {
  kind: 'wait';
  decided: Promise<Settled>;
}

/** A decision without waiting. */
export type Settled = Admit | Reject;
export type Decision = Settled | Wait;

const NO_HEADERS: Headers = Object.freeze({});

/** Admits without a reservation. */
export const ADMIT: Admit = Object.freeze({ kind: 'admit', limit_headers: NO_HEADERS, reservation: null });

/** Admits with a reservation. */
export function admitWith(reservation: Reservation): Admit {
  return { kind: 'admit', limit_headers: NO_HEADERS, reservation };
}

/** Rejects. @param retry_after_seconds null: the error has no Retry-After of its own */
export function reject(
  code: ErrorCode,
  detail: string,
  retry_after_seconds: number | null,
  more: { headers?: Headers; limit_headers?: Headers } = {},
): Reject {
  return { kind: 'reject', code, detail, retry_after_seconds, headers: NO_HEADERS, limit_headers: NO_HEADERS, ...more };
}

/** Returns the error of the contract for a rejection. */
export function errorOf({ code, detail, retry_after_seconds, headers }: Reject): ApiError {
  return new ApiError(code, detail, {
    headers: retry_after_seconds === null ? headers : { 'Retry-After': String(retry_after_seconds), ...headers },
  });
}
