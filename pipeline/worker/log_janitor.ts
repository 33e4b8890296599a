// Keeps the ingest log from filling up with consumed messages. It keeps them for replays (a decoder
// may have to be fixed and the log read again) until the log is half full, and then purges the
// oldest messages that have landed.
//
// A worker that receives no messages for its partitions does not move their checkpoints, which
// would block purging for good. If checkpoints stand still, the janitor publishes an empty message
// that every worker reads.
import { randomUUID } from 'node:crypto';
import type { Logger } from '../../ops/platform/logger.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { publishRecord } from '../../ops/platform/nats/publish_record.ts';
import { INGEST_STREAM, MIXED_SUBJECT } from '../../schemas/streams.ts';
import { ingestBatchCodec } from '../../schemas/codec.ts';
import { LIMITS } from '../limits.ts';

const LOOK_MS = 5000;
const NUDGE_MS_MAX = 2000;

/**
 * Returns the first sequence to keep so that the log falls below its mark, at most one past the
 * checkpoint; null if nothing is to be purged.
 */
export function purgeBelow(
  log: { bytes: number; bytes_max: number; first_seq: number; last_seq: number },
  checkpoint: number,
): number | null {
  const surplus = log.bytes - log.bytes_max * LIMITS.log_keep_fraction;
  if (surplus <= 0 || checkpoint < log.first_seq || log.bytes <= 0) return null;
  const messages = log.last_seq - log.first_seq + 1;
  const below = log.first_seq + Math.ceil((surplus / log.bytes) * messages);
  return Math.min(below, checkpoint + 1);
}

/**
 * Starts the janitor, and returns what stops it.
 *
 * @param landedByAll returns the JetStream sequence up to which everything has landed, or null if
 * another worker is the leader
 * @param lookMs interval in milliseconds; defaults to LOOK_MS
 */
export function startJanitor(
  log: Log,
  logger: Logger,
  landedByAll: () => number | null,
  lookMs = LOOK_MS,
): { stop(): void } {
  let stoodAt: number | null = null;
  const look = async (): Promise<void> => {
    const checkpoint = landedByAll();
    if (checkpoint === null) return;
    const { state, config } = await log.jsm.streams.info(INGEST_STREAM);
    const seq = purgeBelow(
      { bytes: state.bytes, bytes_max: config.max_bytes, first_seq: state.first_seq, last_seq: state.last_seq },
      checkpoint,
    );
    if (seq !== null) await log.jsm.streams.purge(INGEST_STREAM, { seq });
    const isHeldBack = state.bytes > config.max_bytes * LIMITS.log_keep_fraction && checkpoint < state.last_seq;
    const stands = isHeldBack && stoodAt === checkpoint;
    stoodAt = isHeldBack ? checkpoint : null;
    // A full log rejects the message. The janitor retries at the next check.
    if (stands)
      await publishRecord(
        log,
        MIXED_SUBJECT,
        ingestBatchCodec,
        { events: [] },
        { msgID: randomUUID(), timeoutMs: NUDGE_MS_MAX },
      ).catch(() => undefined);
  };
  const timer = setInterval(() => {
    look().catch((error: unknown) => {
      logger.warn({ err: error }, 'the ingest log could not be checked; trying again');
    });
  }, lookMs);
  return {
    stop() {
      clearInterval(timer);
    },
  };
}
