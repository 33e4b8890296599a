// Keeps the ingest log from filling up with what has landed. Consumed messages stay for re-reading (a decoder that was
// wrong can be mended and the log read again) until the log is half full; then the oldest landed ones are purged.
// A worker whose partitions get nothing hears nothing of how far the log is, and its checkpoints would hold the log back until it is
// full for good: where nothing moves, an empty message that every worker reads moves them.
import { randomUUID } from 'node:crypto';
import type { Logger } from '../../ops/platform/logger.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { publishRecord } from '../../ops/platform/nats/publish_record.ts';
import { INGEST_STREAM, MIXED_SUBJECT } from '../../schemas/streams.ts';
import { ingestBatchCodec } from '../../schemas/codec.ts';
import { LIMITS } from '../limits.ts';

const LOOK_MS = 5000;
const NUDGE_MS_MAX = 2000;

/** First sequence to keep: enough of the landed head goes that the log falls below its mark; null for nothing to do. */
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
 * @param landedByAll JetStream sequence up to which everything has landed, or null when the log is another worker's to look after
 * @param lookMs unset: LOOK_MS
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
    // Refused where the log is full; it goes on once there is room.
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
      logger.warn({ err: error }, 'the log could not be looked after');
    });
  }, lookMs);
  return {
    stop() {
      clearInterval(timer);
    },
  };
}
