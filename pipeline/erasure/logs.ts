// JetStream part of an erasure: purges the ingest log and the cached answers of the organization, and
// deletes dead letters that contain the person or a trace. The ingest log is purged as a whole up to a position, for all organizations:
// its messages contain events of many organizations, all of them have landed, and the log keeps
// them only for replay after a decoder is fixed.
import { DeliverPolicy } from '@nats-io/jetstream';
import { purgeCachedAnswers } from '../../ops/exchange/answer_cache.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { DEAD_LETTERS_STREAM, INGEST_STREAM, PENDING_SCORES_QUEUE } from '../../schemas/streams.ts';
import {
  BODY_BYTES_HEADER,
  type DeadLetter,
  deadLetterCodec,
  FINGERPRINT_HEADER,
  userScoreCodec,
} from '../../schemas/codec.ts';
import { scoreIn } from './waiting.ts';

/** Maximum dead letters that are examined together. */
const LETTERS_AT_ONCE = 200;
/** Time without a message after which the consumer is asked whether any is left. */
const SILENT_MS = 5000;

/** Returns the sequence of the newest message of the ingest log. */
export async function ingestPosition(log: Log): Promise<number> {
  return (await log.jsm.streams.info(INGEST_STREAM)).state.last_seq;
}

/**
 * Purges the ingest log up to a position; everything up to it must have landed.
 * @returns the number of messages up to the position that are still in the log
 */
export async function purgeIngest(log: Log, through: number): Promise<number> {
  if (through > 0) await log.jsm.streams.purge(INGEST_STREAM, { seq: through + 1 });
  const { state } = await log.jsm.streams.info(INGEST_STREAM);
  return state.messages === 0 || state.first_seq > through ? 0 : through - state.first_seq + 1;
}

/**
 * Deletes the cached answers of the organization, and deletes and overwrites dead letters. A letter with only the first part of its body is deleted
 * too, because the missing part may name anyone.
 * @param isMeant returns, for each of some letters, whether to delete it
 * @returns the number of deleted letters
 */
export async function eraseDeadLetters(
  log: Log,
  org_id: string,
  isMeant: (letters: readonly DeadLetter[]) => Promise<readonly boolean[]>,
  signal: AbortSignal,
): Promise<number> {
  await purgeCachedAnswers(log, org_id);
  let erased = 0;
  let batch: Stored[] = [];
  const settle = async (): Promise<void> => {
    const meant = await isMeant(batch.map(({ letter }) => letter));
    for (const [index, { seq, cut }] of batch.entries())
      if (cut || meant[index] === true) {
        await log.jsm.streams.deleteMessage(DEAD_LETTERS_STREAM, seq, true);
        erased += 1;
      }
    batch = [];
  };
  for await (const stored of letters(log, signal)) {
    signal.throwIfAborted();
    const letter = ownedLetter(stored.letter);
    if (letter.org_id !== org_id) continue;
    batch.push({ ...stored, letter });
    if (batch.length >= LETTERS_AT_ONCE) await settle();
  }
  signal.throwIfAborted();
  if (batch.length > 0) await settle();
  return erased;
}

/** Returns the letter of a score that waited in vain with the organization and the trace of the score. */
function ownedLetter(letter: DeadLetter): DeadLetter {
  if (letter.org_id !== '' || letter.stage !== PENDING_SCORES_QUEUE) return letter;
  const score = scoreIn(letter.body, userScoreCodec.fingerprint);
  return score === null ? letter : { ...letter, org_id: score.org_id, trace_id: score.trace_id };
}

/**
 * Deletes and overwrites the dead letters that match.
 * @returns the number of deleted letters
 */
export async function eraseDeadLettersWhere(
  log: Log,
  isMeant: (letter: DeadLetter) => boolean,
  signal: AbortSignal,
): Promise<number> {
  let erased = 0;
  for await (const { seq, letter } of letters(log, signal)) {
    signal.throwIfAborted();
    if (!isMeant(letter)) continue;
    await log.jsm.streams.deleteMessage(DEAD_LETTERS_STREAM, seq, true);
    erased += 1;
  }
  signal.throwIfAborted();
  return erased;
}

interface Stored {
  seq: number;
  letter: DeadLetter;
  /** True if the letter contains only a part of its body. */
  cut: boolean;
}

/**
 * Yields every readable dead letter that is in the stream now. Ends when the signal aborts, and
 * when an operator deletes the remaining ones.
 */
async function* letters(log: Log, signal: AbortSignal): AsyncGenerator<Stored> {
  const { state } = await log.jsm.streams.info(DEAD_LETTERS_STREAM);
  if (state.messages === 0) return;
  const consumer = await log.js.consumers.get(DEAD_LETTERS_STREAM, { deliver_policy: DeliverPolicy.All });
  const messages = await consumer.consume({ max_bytes: 16 * 1024 * 1024 });
  const stop = () => {
    messages.stop();
  };
  signal.addEventListener('abort', stop, { once: true });
  let waitsSince: number | null = performance.now();
  const look = setInterval(() => {
    if (waitsSince === null || performance.now() - waitsSince < SILENT_MS) return;
    consumer.info().then(
      ({ num_pending }) => {
        if (num_pending === 0 && waitsSince !== null) stop();
      },
      () => undefined,
    );
  }, SILENT_MS);
  try {
    if (signal.aborted) return;
    for await (const message of messages) {
      waitsSince = null;
      const letter = read(message.data, message.headers?.get(FINGERPRINT_HEADER));
      const cut = message.headers?.has(BODY_BYTES_HEADER) === true && (letter?.body.length ?? 0) > 0;
      if (letter !== null) yield { seq: message.seq, letter, cut };
      if (message.seq >= state.last_seq || message.info.pending === 0) return;
      waitsSince = performance.now();
    }
  } finally {
    clearInterval(look);
    signal.removeEventListener('abort', stop);
    messages.stop();
  }
}

function read(data: Uint8Array, fingerprint: string | undefined): DeadLetter | null {
  try {
    return deadLetterCodec.decode(data, fingerprint);
  } catch {
    return null;
  }
}
