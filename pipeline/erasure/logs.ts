// What an erasure does in JetStream: waits until what was accepted has landed, takes what has landed out of the ingest log, and takes
// dead letters that name the person or a trace out of theirs.
// The ingest log is purged as a whole up to a position, of all orgs: its messages hold events of many, every one of them has landed,
// and what it keeps of them is there for mending a decoder, no more.
import { DeliverPolicy } from '@nats-io/jetstream';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { DEAD_LETTERS_STREAM, INGEST_STREAM } from '../../schemas/streams.ts';
import { BODY_BYTES_HEADER, type DeadLetter, deadLetterCodec, FINGERPRINT_HEADER } from '../../schemas/codec.ts';

/** Letters that are looked at together. */
const LETTERS_AT_ONCE = 200;
/** Without a letter for so long, it is asked whether any is still to come. */
const SILENT_MS = 5000;

/** Sequence of the newest message of the ingest log. */
export async function ingestPosition(log: Log): Promise<number> {
  return (await log.jsm.streams.info(INGEST_STREAM)).state.last_seq;
}

/** Takes everything up to a position out of the ingest log; all of it must have landed. @returns messages that are still there */
export async function purgeIngest(log: Log, through: number): Promise<number> {
  if (through > 0) await log.jsm.streams.purge(INGEST_STREAM, { seq: through + 1 });
  const { state } = await log.jsm.streams.info(INGEST_STREAM);
  return state.messages === 0 || state.first_seq > through ? 0 : through - state.first_seq + 1;
}

/**
 * Overwrites dead letters. One that holds only the first part of its body goes too: whom the rest named cannot be told any more.
 * @param isMeant which of some letters are to go
 * @returns how many went
 */
export async function eraseDeadLetters(
  log: Log,
  org_id: string,
  isMeant: (letters: readonly DeadLetter[]) => Promise<readonly boolean[]>,
  signal: AbortSignal,
): Promise<number> {
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
    if (stored.letter.org_id !== org_id) continue;
    batch.push(stored);
    if (batch.length >= LETTERS_AT_ONCE) await settle();
  }
  signal.throwIfAborted();
  if (batch.length > 0) await settle();
  return erased;
}

/** Overwrites the dead letters that are meant. @returns how many there were */
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
  /** Holds a part of its body, and not all of it. */
  cut: boolean;
}

/** Every letter that is there now and can be read. Ends when the signal is aborted, and when an operator deletes those that were still to come. */
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
