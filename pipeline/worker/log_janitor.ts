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
import { ingestBatchCodec } from '../../schemas/codec.ts';
import type { LogStream } from '../../schemas/log_layout.ts';
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
 * @param checkpoints returns the position up to which everything has landed, by partition, or null
 * if another worker is the leader
 * @param lookMs interval in milliseconds; defaults to LOOK_MS
 */
export function startJanitor(
  log: Log,
  logger: Logger,
  checkpoints: () => readonly number[] | null,
  lookMs = LOOK_MS,
): { stop(): void } {
  /** Sequence up to which a stream has landed that was held back in the last look, by name. */
  const stoodAt = new Map<string, number>();
  const look = async (): Promise<void> => {
    const landed = checkpoints();
    if (landed === null) return;
    if (log.streams.layout.isChanging) await changeOn(log, landed);
    for (const stream of log.streams.layout.streams) {
      const through = Math.min(...stream.partitionsOf(landed.length).map((one) => stream.seqThrough(landed[one] ?? 0)));
      const isHeldBack = await purge(log, stream, through);
      const stands = isHeldBack && stoodAt.get(stream.name) === through;
      if (isHeldBack) stoodAt.set(stream.name, through);
      else stoodAt.delete(stream.name);
      if (stands && stream.isOpen) await nudge(log, stream);
    }
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

/**
 * Purges what has landed of a stream that is more than half full.
 * @param through sequence up to which everything has landed
 * @returns true if the stream is more than half full and has messages that have not landed
 */
async function purge(log: Log, { name }: LogStream, through: number): Promise<boolean> {
  const { state, config } = await log.jsm.streams.info(name);
  const seq = purgeBelow(
    { bytes: state.bytes, bytes_max: config.max_bytes, first_seq: state.first_seq, last_seq: state.last_seq },
    through,
  );
  if (seq !== null) await log.jsm.streams.purge(name, { seq });
  return state.bytes > config.max_bytes * LIMITS.log_keep_fraction && through < state.last_seq;
}

/** Publishes a message without events. A full stream rejects it; the janitor retries at the next check. */
async function nudge(log: Log, { mixed }: LogStream): Promise<void> {
  await publishRecord(
    log,
    mixed,
    ingestBatchCodec,
    { events: [] },
    { msgID: randomUUID(), timeoutMs: NUDGE_MS_MAX },
  ).catch(() => undefined);
}

/** Takes the next steps of a change of the number of streams that a killed process may have left. */
async function changeOn({ streams }: Log, landed: readonly number[]): Promise<void> {
  if (streams.layout.record.next !== null) await streams.complete();
  await streams.end();
  await streams.retire(landed);
}
