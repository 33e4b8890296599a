// Publishes scores of people and applications, and deletions of such scores, to the queue SCORES, and
// scores whose trace has not arrived to PENDING_SCORES. Resolves once the record is stored; a
// repetition within the stream's deduplication window is stored once, and a later one changes
// nothing when it lands.
import { type UserScore, userScoreCodec } from '../../schemas/codec.ts';
import { scoreMessageId } from '../../schemas/score_deletion.ts';
import { tokenOf } from '../../schemas/records/webhook.ts';
import { pendingScoresSubject, SCORES_SUBJECT } from '../../schemas/streams.ts';
import type { Log } from '../platform/nats/open_log.ts';
import { publishRecord } from '../platform/nats/publish_record.ts';

/** Maximum time for the log to confirm a score. */
const CONFIRM_MS_MAX = 2000;

/** @throws Error when the server did not confirm in time; the record may or may not be stored then */
export async function queueScore(log: Log, score: UserScore): Promise<void> {
  const options = { msgID: scoreMessageId(score), timeoutMs: CONFIRM_MS_MAX };
  await publishRecord(log, SCORES_SUBJECT, userScoreCodec, score, options);
}

/**
 * Returns the id of a score that waits for its trace, or that has waited for it. A score that is
 * given again with another value has another id.
 */
const pendingMessageId = ({ score_id, created_at }: UserScore): string => `${score_id}-${created_at}`;

/**
 * Stores a score until its trace arrives.
 * @throws Error when the server did not confirm in time, or when the organization has as many
 * waiting as it may, see isFull
 */
export async function queuePendingScore(log: Log, score: UserScore): Promise<void> {
  const options = { msgID: pendingMessageId(score), timeoutMs: CONFIRM_MS_MAX };
  await publishRecord(log, pendingScoresSubject(tokenOf(score.org_id)), userScoreCodec, score, options);
}

/** Publishes a score whose trace has arrived. @throws Error as queueScore does */
export async function queueAttachedScore(log: Log, score: UserScore): Promise<void> {
  const options = { msgID: pendingMessageId(score), timeoutMs: CONFIRM_MS_MAX };
  await publishRecord(log, SCORES_SUBJECT, userScoreCodec, score, options);
}
