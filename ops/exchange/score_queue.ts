// Publishes scores of people and applications, and deletions of such scores, to the queue SCORES.
// Resolves once the record is stored; a repetition within the stream's deduplication window is
// stored once, and a later one changes nothing when it lands.
import { type UserScore, userScoreCodec } from '../../schemas/codec.ts';
import { scoreMessageId } from '../../schemas/score_deletion.ts';
import { SCORES_SUBJECT } from '../../schemas/streams.ts';
import type { Log } from '../platform/nats/open_log.ts';
import { publishRecord } from '../platform/nats/publish_record.ts';

/** Maximum time for the log to confirm a score. */
const CONFIRM_MS_MAX = 2000;

/** @throws Error when the server did not confirm in time; the record may or may not be stored then */
export async function queueScore(log: Log, score: UserScore): Promise<void> {
  const options = { msgID: scoreMessageId(score), timeoutMs: CONFIRM_MS_MAX };
  await publishRecord(log, SCORES_SUBJECT, userScoreCodec, score, options);
}
