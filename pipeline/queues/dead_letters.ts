// Stores dead letters in the stream DEAD_LETTERS, which rejects messages when it is full. A letter
// holds its whole body while the stream is less than half full, the first CUT_BODY_BYTES_MAX of it
// up to nine tenths, and none of it above: the bodies of one organization leave room for the
// letters of all others, and every letter says what died, why, and where the log holds it. Storing
// never waits for room: without any, the caller receives NoRoomForLetter.
import { headers } from '@nats-io/transport-node';
import { isFull, isTooLarge } from '../../ops/platform/nats/refused.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { DEAD_LETTERS_STREAM, deadLetterSubject, MESSAGE_BYTES_MAX } from '../../schemas/streams.ts';
import { BODY_BYTES_HEADER, type DeadLetter, deadLetterCodec, FINGERPRINT_HEADER } from '../../schemas/codec.ts';

const PUBLISH_TIMEOUT_MS = 3000;
/** Time for which the last known fill of the stream is used. */
const FILL_AGE_MS_MAX = 1000;
export const DETAIL_CHARS_MAX = 4000;
/** Largest body: 64 KiB of a message remain for the detail and the names of a letter. */
export const WHOLE_BODY_BYTES_MAX = MESSAGE_BYTES_MAX - 64 * 1024;
/** Bytes kept of a body that is cut; nearly every event is smaller. */
export const CUT_BODY_BYTES_MAX = 64 * 1024;
/** Fills of the stream from which bodies are cut, and from which they are left out. */
const CUT_FROM = 0.5;
const BARE_FROM = 0.9;

/** DEAD_LETTERS has no room for the letter, not even without its body. */
export class NoRoomForLetter extends Error {}

/**
 * Returns how many bytes of its body a letter holds. @param fill used part of the stream, 0 to 1
 */
export function bodyBytesMax(fill: number): number {
  if (fill < CUT_FROM) return WHOLE_BODY_BYTES_MAX;
  return fill < BARE_FROM ? CUT_BODY_BYTES_MAX : 0;
}

export class DeadLetters {
  readonly #log: Log;
  #fill = Promise.resolve(0);
  #filledAt = -Infinity;

  constructor(log: Log) {
    this.#log = log;
  }

  /**
   * Resolves when the letter is stored.
   * @param msgID id of the letter: a second letter with it is not stored within the deduplication
   * window of the stream
   * @throws NoRoomForLetter; Error when the server did not confirm in time, in which case the
   * letter may be stored or not
   */
  async put(letter: DeadLetter, msgID: string): Promise<void> {
    let cause: unknown;
    const most = bodyBytesMax(await this.#currentFill());
    for (const bytes of new Set([most, Math.min(most, CUT_BODY_BYTES_MAX), 0])) {
      try {
        await this.#publish(letter, bytes, msgID);
        return;
      } catch (error) {
        if (!isFull(error) && !isTooLarge(error)) throw error;
        cause = error;
      }
    }
    throw new NoRoomForLetter('DEAD_LETTERS is full', { cause });
  }

  async #publish(letter: DeadLetter, bytes: number, msgID: string): Promise<void> {
    const body = letter.body.subarray(0, bytes);
    const head = headers();
    head.set(FINGERPRINT_HEADER, deadLetterCodec.fingerprint);
    if (body.length < letter.body.length) head.set(BODY_BYTES_HEADER, String(letter.body.length));
    const data = deadLetterCodec.encode({ ...letter, detail: letter.detail.slice(0, DETAIL_CHARS_MAX), body });
    await this.#log.js.publish(deadLetterSubject(letter.stage), data, {
      msgID,
      headers: head,
      timeout: PUBLISH_TIMEOUT_MS,
    });
  }

  /**
   * Resolves with the used part of the stream as last known; a letter that is rejected nevertheless
   * is published with less of its body.
   */
  #currentFill(): Promise<number> {
    const now = performance.now();
    if (now - this.#filledAt >= FILL_AGE_MS_MAX) {
      this.#filledAt = now;
      this.#fill = this.#readFill(this.#fill);
    }
    return this.#fill;
  }

  async #readFill(before: Promise<number>): Promise<number> {
    try {
      const { state, config } = await this.#log.jsm.streams.info(DEAD_LETTERS_STREAM);
      return config.max_bytes > 0 ? state.bytes / config.max_bytes : 0;
    } catch {
      // The server does not answer at the moment: the publish that follows fails with it, and its
      // caller retries.
      return before;
    }
  }
}

/** Why a message left its queue without its work being done. */
export type DeadMessageReason = 'unknown_schema' | 'unreadable_message' | 'refused' | 'expired';

/** A message of a queue that can never be processed. */
export interface DeadMessage {
  /** Name of the queue: the stage of its dead letters. */
  queue: string;
  reason: DeadMessageReason;
  detail: string;
  seq: number;
  data: Uint8Array;
}

/**
 * Returns a function that stores a message of a queue as a dead letter. The function rejects when
 * there is no room.
 * @param now milliseconds since the epoch
 */
export function createDeadLetterStore(log: Log, now: () => number): (message: DeadMessage) => Promise<void> {
  const letters = new DeadLetters(log);
  return async ({ queue, reason, detail, seq, data }) => {
    const letter = itemLetter({ stage: queue, reason, detail, log_seq: seq, died_at: now(), body: Buffer.from(data) });
    await letters.put(letter, `dead:${queue}:${seq}`);
  };
}

/** Returns the letter of a message as a whole: log_index is -1, and there is no partition. */
export function itemLetter(
  item: Pick<DeadLetter, 'stage' | 'reason' | 'detail' | 'log_seq' | 'died_at' | 'body'>,
): DeadLetter {
  return { ...item, partition: 0, log_index: -1, org_id: '', format: '', event_hex: '', trace_id: '', received_at: 0 };
}
