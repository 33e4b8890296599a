// Puts letters into DEAD_LETTERS, which refuses when it is full. In: a letter with its body. Out: it is stored, as much of it as there is
// room for: the whole body while the stream is less than half full, then its first part, at last none of it. So bodies of one org leave
// room for the letters of all the others, and what a letter always tells is what died, why, and where the log has it.
// Guarantees: it never waits for room. A letter for which there is none is its caller's to tell of.
import { headers } from '@nats-io/transport-node';
import { isFull, isTooLarge } from '../../ops/platform/nats/refused.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { DEAD_LETTERS_STREAM, deadLetterSubject, MESSAGE_BYTES_MAX } from '../../schemas/streams.ts';
import { BODY_BYTES_HEADER, type DeadLetter, deadLetterCodec, FINGERPRINT_HEADER } from '../../schemas/codec.ts';

const PUBLISH_TIMEOUT_MS = 3000;
/** How full the stream was is known for this long. */
const LOOK_MS = 1000;
export const DETAIL_CHARS_MAX = 4000;
/** What a message takes beside the detail and the names of a letter. */
export const WHOLE_BODY_BYTES_MAX = MESSAGE_BYTES_MAX - 64 * 1024;
/** Of a body that is cut: nearly every event is smaller. */
export const CUT_BODY_BYTES_MAX = 64 * 1024;
/** Parts of the stream from which on bodies are cut, and are left out. */
const CUT_FROM = 0.5;
const BARE_FROM = 0.9;

/** There is no room for it, not even without its body. */
export class NoRoomForLetter extends Error {}

/** Bytes of a body that a letter takes along. @param fill part of the stream that is used */
export function bodyBytesMax(fill: number): number {
  if (fill < CUT_FROM) return WHOLE_BODY_BYTES_MAX;
  return fill < BARE_FROM ? CUT_BODY_BYTES_MAX : 0;
}

export class DeadLetters {
  readonly #log: Log;
  #fill = Promise.resolve(0);
  #lookedAt = -Infinity;

  constructor(log: Log) {
    this.#log = log;
  }

  /**
   * Resolves when the letter is stored.
   * @param msgID the same for the same letter: within the stream's window a second one is not stored
   * @throws NoRoomForLetter; Error when it was not confirmed in time, in which case it may or may not be stored
   */
  async put(letter: DeadLetter, msgID: string): Promise<void> {
    let cause: unknown;
    const most = bodyBytesMax(await this.#look());
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

  /** Part of the stream that is used, as far as is known: what it turns out not to take is offered again without its body. */
  #look(): Promise<number> {
    const now = performance.now();
    if (now - this.#lookedAt >= LOOK_MS) {
      this.#lookedAt = now;
      this.#fill = this.#ask(this.#fill);
    }
    return this.#fill;
  }

  async #ask(before: Promise<number>): Promise<number> {
    try {
      const { state, config } = await this.#log.jsm.streams.info(DEAD_LETTERS_STREAM);
      return config.max_bytes > 0 ? state.bytes / config.max_bytes : 0;
    } catch {
      // Not to be heard just now; the publish that follows says so, and is tried again.
      return before;
    }
  }
}

/** A letter of a message that stands at no place of the ingest log: log_index -1 stands for a whole message. */
export function itemLetter(
  item: Pick<DeadLetter, 'stage' | 'reason' | 'detail' | 'log_seq' | 'died_at' | 'body'>,
): DeadLetter {
  return { ...item, partition: 0, log_index: -1, org_id: '', format: '', event_hex: '', trace_id: '', received_at: 0 };
}
