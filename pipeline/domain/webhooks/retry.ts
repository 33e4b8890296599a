// The retry policy of webhook deliveries: the state after an attempt, the waits between attempts,
// and when to give up. Pure.

/** State of a delivery after an attempt, in the names of the delivery log. */
export type DeliveryOutcome = 'delivered' | 'failed' | 'retrying' | 'dead-lettered';

export interface RetryTimings {
  /**
   * The first wait is between this and twice this; it doubles with each further one, up to maxMs.
   */
  firstMs: number;
  maxMs: number;
  /** A delivery that still fails this long after its first attempt is dead-lettered. */
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

/** Statuses whose Retry-After is honoured. */
const TELLS_WHEN = new Set([429, 503]);

/**
 * How an attempt ended: the answer's status, or null without an answer (timeout, broken connection,
 * rejected address).
 */
export type TryStatus = number | null;

/**
 * Classifies the end of an attempt. 2xx: delivered. 408, 429, 5xx and no answer: retry. Anything
 * else, redirects included, is final.
 */
export function verdictOf(status: TryStatus): 'delivered' | 'failed' | 'retry' {
  if (status === null || status === 408 || status === 429) return 'retry';
  if (status >= 200 && status < 300) return 'delivered';
  return status >= 500 && status < 600 ? 'retry' : 'failed';
}

/**
 * Returns the milliseconds to wait after attempt `attempt` (0 is the first): the ceiling doubles
 * each time, and half of the wait is random.
 */
export function backoffMs(
  attempt: number,
  { firstMs, maxMs }: RetryTimings,
  random: () => number = Math.random,
): number {
  const ceiling = Math.min(maxMs, 2 * firstMs * 2 ** Math.min(attempt, 30));
  return Math.round(ceiling / 2 + random() * (ceiling / 2));
}

/**
 * Returns the wait that a Retry-After header asks for, in milliseconds from now: it is in seconds
 * or a date; null when it cannot be read.
 */
export function retryAfterMs(status: TryStatus, header: string | undefined, now: number): number | null {
  if (header === undefined || status === null || !TELLS_WHEN.has(status)) return null;
  const text = header.trim();
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const at = /^[A-Z][a-z]{2}, /.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(at) ? null : Math.max(0, at - now);
}

export interface FailedTry {
  /** Number of the attempt; 0 is the first. */
  attempt: number;
  /** Milliseconds since the epoch. */
  first_attempt_at: number;
  status: TryStatus;
  retry_after: string | undefined;
}

/**
 * Returns when a delivery is attempted again, milliseconds since the epoch; null when it is given
 * up because the next attempt would come more than giveUpMs after the first.
 */
export function nextTryAt(failed: FailedTry, now: number, timings: RetryTimings, random?: () => number): number | null {
  const asked = retryAfterMs(failed.status, failed.retry_after, now);
  const wait = Math.max(backoffMs(failed.attempt, timings, random), Math.min(asked ?? 0, timings.retryAfterMaxMs));
  return now + wait - failed.first_attempt_at > timings.giveUpMs ? null : now + wait;
}
