// What an organization has waiting in JetStream before it becomes rows: events of Langfuse and LangSmith
// that wait to be folded into spans, and scores that wait for their trace. An erasure has the events
// folded, so that it finds their spans as any others, and deletes the scores.
import { setTimeout as sleep } from 'node:timers/promises';
import { nextMessage } from '../../ops/platform/nats/next_message.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { type UserScore, userScoreCodec } from '../../schemas/codec.ts';
import { tokenOf } from '../../schemas/records/webhook.ts';
import { FOLD_SUBJECT } from '../../schemas/signals/erasure.ts';
import {
  LANGFUSE_STREAM,
  langfuseSubjects,
  PENDING_SCORES_STREAM,
  pendingScoresSubject,
} from '../../schemas/streams.ts';
import { StoreUnavailable } from '../../sql/client/client.ts';

const LOOK_MS = 500;
/** Time that the folder gets; then the whole job is retried later. */
const FOLD_MS_MAX = 600_000;
/** Maximum scores that are examined together. */
const SCORES_AT_ONCE = 200;

/**
 * Resolves when every event that waits at the call has become a span in the ingest log.
 * @throws StoreUnavailable when no worker has folded them within ten minutes
 */
export async function untilFolded(log: Log, org_id: string, signal: AbortSignal): Promise<void> {
  const { state } = await log.jsm.streams.info(LANGFUSE_STREAM);
  const deadline = performance.now() + FOLD_MS_MAX;
  for (;;) {
    const first = await nextMessage(log, LANGFUSE_STREAM, 1, langfuseSubjects(tokenOf(org_id)));
    if (first === null || first.seq > state.last_seq) return;
    if (performance.now() > deadline) throw new StoreUnavailable('no worker folds the events of Langfuse');
    // The worker that folds takes it as long as it is repeated; another may take over at any time.
    log.nc.publish(FOLD_SUBJECT, org_id);
    await sleep(LOOK_MS, undefined, { signal });
  }
}

/**
 * Deletes and overwrites the waiting scores that match.
 * @param isMeant returns, for each of some scores, whether to delete it
 * @returns the number of deleted scores
 */
export async function erasePendingScores(
  log: Log,
  org_id: string,
  isMeant: (scores: readonly UserScore[]) => Promise<readonly boolean[]>,
  signal: AbortSignal,
): Promise<number> {
  const { state } = await log.jsm.streams.info(PENDING_SCORES_STREAM);
  const subject = pendingScoresSubject(tokenOf(org_id));
  let erased = 0;
  let seq = 1;
  for (;;) {
    const batch: { seq: number; score: UserScore }[] = [];
    while (batch.length < SCORES_AT_ONCE) {
      signal.throwIfAborted();
      const message = seq > state.last_seq ? null : await nextMessage(log, PENDING_SCORES_STREAM, seq, subject);
      if (message === null || message.seq > state.last_seq) break;
      seq = message.seq + 1;
      const score = scoreIn(message.data, message.fingerprint);
      if (score !== null) batch.push({ seq: message.seq, score });
    }
    if (batch.length === 0) return erased;
    const meant = await isMeant(batch.map(({ score }) => score));
    for (const [index, one] of batch.entries()) {
      if (meant[index] !== true) continue;
      // The consumer may acknowledge the message at this very moment.
      if (await log.jsm.streams.deleteMessage(PENDING_SCORES_STREAM, one.seq, true).catch(() => false)) erased += 1;
    }
  }
}

/** Returns the score in a message; null for one that the consumer will dead-letter. */
export function scoreIn(data: Uint8Array, fingerprint: string | undefined): UserScore | null {
  try {
    return userScoreCodec.decode(data, fingerprint);
  } catch {
    return null;
  }
}
