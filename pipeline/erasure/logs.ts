// JetStream part of an erasure: purges the ingest log and the cached answers of the organization, and
// deletes dead letters that contain the person or a trace. The ingest log is purged as a whole up to a position, for all organizations:
// its messages contain events of many organizations, all of them have landed, and the log keeps
// them only for replay after a decoder is fixed.
import { DeliverPolicy } from '@nats-io/jetstream';
import { purgeCachedAnswers } from '../../ops/exchange/answer_cache.ts';
import { streamState } from '../../ops/platform/nats/log_streams.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { DEAD_LETTERS_STREAM, PENDING_SCORES_QUEUE } from '../../schemas/streams.ts';
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

/** Where the ingest log ended at a moment. */
export interface LogEnd {
  /** Sequence of the newest message of each stream, by name. */
  seqs: ReadonlyMap<string, number>;
  /** Position of the newest message that may hold events of a partition, by partition. */
  positions: readonly number[];
  /** Greatest position of all. */
  newest: number;
}

/** Returns where the ingest log ends. @param partitions number of its partitions */
export async function ingestEnd(log: Log, partitions: number): Promise<LogEnd> {
  const { layout } = log.streams;
  const seqs = new Map<string, number>();
  for (const { name } of layout.streams) seqs.set(name, (await streamState(log.jsm, name))?.last_seq ?? 0);
  const positions = Array.from({ length: partitions }, (_, partition) =>
    Math.max(
      ...layout.holding(partition).map((stream) => {
        const seq = seqs.get(stream.name) ?? 0;
        return seq === 0 ? 0 : stream.position(seq);
      }),
    ),
  );
  return { seqs, positions, newest: Math.max(...positions) };
}

/**
 * Purges the ingest log up to an end; everything up to it must have landed.
 * @returns the number of messages up to the end that are still in the log
 */
export async function purgeIngest(log: Log, { seqs }: Pick<LogEnd, 'seqs'>): Promise<number> {
  let left = 0;
  for (const [name, through] of seqs) {
    // A stream of a former generation may have been deleted since.
    if (through === 0 || (await streamState(log.jsm, name)) === null) continue;
    await log.jsm.streams.purge(name, { seq: through + 1 });
    const state = await streamState(log.jsm, name);
    if (state !== null && state.messages > 0 && state.first_seq <= through) left += through - state.first_seq + 1;
  }
  return left;
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
