// Writes of KV buckets that lost against another one of the same key, and how long to wait before the next try.
import { JetStreamApiError } from '@nats-io/jetstream';

/**
 * JetStream's error codes of a write whose key stands at another revision. A cluster has two of them: the second one, without the
 * revision, while the write that won is still being agreed upon and cannot be read yet.
 */
const WRONG_LAST_REVISION = new Set([10071, 10164]);

const WAIT_STEP_MS = 5;
const WAIT_MS_MAX = 100;

/** Whether a write was refused because another one came first. */
export const isLostWrite = (error: unknown): boolean =>
  error instanceof JetStreamApiError && WRONG_LAST_REVISION.has(error.code);

/** A pause before the next try, longer with each: what won may not be readable yet. */
export const waitAfterLostWrite = (tries: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, Math.min(WAIT_STEP_MS * tries, WAIT_MS_MAX));
  });
