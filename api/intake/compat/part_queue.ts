// Stores parts of spans in the stream LANGFUSE until a worker folds them: events of Langfuse's older
// protocol, and runs of LangSmith that have not ended. A message holds those of one trace of one
// request.
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { isFull } from '../../../ops/platform/nats/refused.ts';
import { type LangfuseMessage, traceToken } from '../../../schemas/records/langfuse.ts';
import { tokenOf } from '../../../schemas/records/webhook.ts';
import { langfuseSubject } from '../../../schemas/streams.ts';
import { ApiError } from '../../http/errors.ts';

/** Maximum time for the log to confirm a message. */
const CONFIRM_MS_MAX = 5000;

/**
 * Returns a function that stores a message.
 * @returns function that throws ApiError rate_limited when the stream is full, upstream_unavailable
 */
export function partQueue(log: Log): (message: LangfuseMessage) => Promise<void> {
  return async (message) => {
    const subject = langfuseSubject(tokenOf(message.org_id), traceToken(message.trace_id));
    try {
      await log.js.publish(subject, JSON.stringify(message), { timeout: CONFIRM_MS_MAX });
    } catch (cause) {
      if (isFull(cause))
        throw new ApiError('rate_limited', 'Too many events wait to be folded into spans. Send them again later.', {
          cause,
        });
      throw new ApiError('upstream_unavailable', 'The events could not be stored. Send them again.', { cause });
    }
  };
}
