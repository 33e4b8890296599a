// The queue of scores whose trace has not arrived, for the slices that accept scores.
import { queuePendingScore } from '../../ops/exchange/score_queue.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { isFull } from '../../ops/platform/nats/refused.ts';
import type { UserScore } from '../../schemas/codec.ts';
import { PENDING_SCORES_ORG_MAX } from '../../schemas/streams.ts';
import { ApiError } from '../http/errors.ts';

/** Seconds after which a score is worth sending again: some of the waiting ones are attached then. */
const RETRY_AFTER_S = 30;

/**
 * Returns a function that resolves when the log has stored a score.
 * @returns function that throws ApiError rate_limited when the organization has as many waiting as
 * it may
 */
export function pendingScoreQueue(log: Log): (score: UserScore) => Promise<void> {
  return async (score) => {
    try {
      await queuePendingScore(log, score);
    } catch (error) {
      if (!isFull(error)) throw error;
      throw new ApiError(
        'rate_limited',
        `The organization has ${PENDING_SCORES_ORG_MAX} scores whose traces have not arrived, the most that can wait.`,
        { headers: { 'Retry-After': String(RETRY_AFTER_S) }, cause: error },
      );
    }
  };
}
