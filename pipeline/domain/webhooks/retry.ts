// What becomes of a delivery after a try: the table of states, the waits between tries, when to give up. Pure.

/** State of a delivery after a try; the names are those of the delivery log. */
export type DeliveryOutcome = 'delivered' | 'failed' | 'retrying' | 'dead-lettered';

export interface RetryTimings {
  /** The first wait is this to twice this; it doubles with each further one, up to maxMs. */
  firstMs: number;
  maxMs: number;
  /** A delivery that still fails this long after its first try is given up. */
  giveUpMs: number;
  /** A receiver may ask for a longer wait by Retry-After, up to this. */
  retryAfterMaxMs: number;
}

export const RETRY: RetryTimings = {
  firstMs: 1000,
  maxMs: 60_000,
  giveUpMs: 24 * 3_600_000,
  retryAfterMaxMs: 3_600_000,
};

/** Statuses whose Retry-After is heeded. */
const TELLS_WHEN = new Set([429, 503]);

/** How a try ended: an answer's status, or null where none came (time out, broken connection, an address that is refused). */
export type TryStatus = number | null;

/**
 * What a try's end means. 2xx: delivered. 408, 429, 5xx and no answer at all: to be tried again. Anything else, redirects
 * included, is the receiver's last word.
 */
export function verdictOf(status: TryStatus): 'delivered' | 'failed' | 'retry' {
  if (status === null || status === 408 || status === 429) return 'retry';
  if (status >= 200 && status < 300) return 'delivered';
  return status >= 500 && status < 600 ? 'retry' : 'failed';
}

/** Milliseconds before the try after `attempt` (0 is the first): its ceiling doubles, and half of it is left to chance. */
export function backoffMs(
  attempt: number,
  { firstMs, maxMs }: RetryTimings,
  random: () => number = Math.random,
): number {
  const ceiling = Math.min(maxMs, 2 * firstMs * 2 ** Math.min(attempt, 30));
  return Math.round(ceiling / 2 + random() * (ceiling / 2));
}

/** What a Retry-After header asks for, milliseconds from now: seconds or a date; null where it says nothing that can be read. */
export function retryAfterMs(status: TryStatus, header: string | undefined, now: number): number | null {
  if (header === undefined || status === null || !TELLS_WHEN.has(status)) return null;
  const text = header.trim();
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const at = /^[A-Z][a-z]{2}, /.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(at) ? null : Math.max(0, at - now);
}

export interface FailedTry {
  /** 0 is the first. */
  attempt: number;
  /** Milliseconds since the epoch. */
  first_attempt_at: number;
  status: TryStatus;
  retry_after: string | undefined;
}

/**
 * When a delivery is tried again, milliseconds since the epoch; null when it is given up: the next try would come more than
 * giveUpMs after the first.
 */
export function nextTryAt(failed: FailedTry, now: number, timings: RetryTimings, random?: () => number): number | null {
  const asked = retryAfterMs(failed.status, failed.retry_after, now);
  const wait = Math.max(backoffMs(failed.attempt, timings, random), Math.min(asked ?? 0, timings.retryAfterMaxMs));
  return now + wait - failed.first_attempt_at > timings.giveUpMs ? null : now + wait;
}
