// Recognizes a write to a KV bucket that lost against another write to the same key, and paces the
// retries.
import { JetStreamApiError } from '@nats-io/jetstream';

/**
 * JetStream's error codes for a write that expected another revision of its key. A cluster has two:
 * it answers the second, which carries no revision, while it still agrees on the write that won, so
 * that write cannot be read yet.
 */
const WRONG_LAST_REVISION = new Set([10071, 10164]);

const WAIT_STEP_MS = 5;
const WAIT_MS_MAX = 100;

/**
 * Returns true for the error of a write that was refused because another write to the key came
 * first.
 */
export const isLostWrite = (error: unknown): boolean =>
  error instanceof JetStreamApiError && WRONG_LAST_REVISION.has(error.code);

/**
 * Resolves after a pause that grows with the number of tries, because the winning write may not be
 * readable yet.
 */
export const waitAfterLostWrite = (tries: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, Math.min(WAIT_STEP_MS * tries, WAIT_MS_MAX));
  });
