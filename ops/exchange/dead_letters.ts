// Reads, replays and deletes dead letters, for the operator's command and for the API. A replayed event enters the
// ingest log unchanged; its id is the same, so it lands once. A letter is deleted only after the log has stored its
// event. A letter that was written while disk space was low contains only a part of its event, or none of it; the event
// is then read from its position in the ingest log, as long as the log keeps landed messages.
import type { StoredMsg } from '@nats-io/jetstream';
import { headers } from '@nats-io/transport-node';
import {
  BODY_BYTES_HEADER,
  type DeadLetter,
  deadLetterCodec,
  FINGERPRINT_HEADER,
  type IngestEvent,
  ingestBatchCodec,
  type SourceFormat,
} from '../../schemas/codec.ts';
import { partitionOf } from '../../schemas/partition_of.ts';
import { DEAD_LETTERS_STREAM, deadLetterSubject, ingestSubject } from '../../schemas/streams.ts';
import { fixedPartitions, type Log, logBaseReader } from '../platform/nats/open_log.ts';

type Letters = Pick<Log, 'js' | 'jsm' | 'bucket' | 'streams'>;

/** A dead letter in its stream. */
export interface StoredLetter {
  /** Sequence in DEAD_LETTERS, which identifies the letter. */
  seq: number;
  letter: DeadLetter;
  /** Length of the whole body, if the letter contains only a part of it. */
  bodyBytes: number | null;
}

/** The letter holds no event that could be replayed, or its event is lost. */
export class NotReplayable extends Error {}

/** Returns the letter at a sequence; null if it was replayed, deleted or never stored. */
export async function readLetter(log: Letters, seq: number): Promise<StoredLetter | null> {
  return stored(await log.jsm.streams.getMessage(DEAD_LETTERS_STREAM, { seq }));
}

/**
 * Returns the first letter at a sequence or after it; null without one.
 * @param stage stage of the letter; unset: any
 */
export async function nextLetter(log: Letters, seq: number, stage?: string): Promise<StoredLetter | null> {
  const query = { seq, next_by_subj: deadLetterSubject(stage ?? '*') };
  return stored(await log.jsm.streams.getMessage(DEAD_LETTERS_STREAM, query));
}

function stored(message: StoredMsg | null): StoredLetter | null {
  if (message === null) return null;
  const bodyBytes = message.header.has(BODY_BYTES_HEADER) ? Number(message.header.get(BODY_BYTES_HEADER)) : null;
  return { seq: message.seq, letter: decoded(message), bodyBytes };
}

/** Returns the letter of a message. One that a newer version wrote becomes a letter that only says so. */
function decoded({ subject, data, header, time }: StoredMsg): DeadLetter {
  try {
    return deadLetterCodec.decode(data, header.get(FINGERPRINT_HEADER));
  } catch {
    return {
      stage: subject.slice(deadLetterSubject('').length),
      reason: 'unknown_schema',
      detail: 'This version of the service cannot read the letter.',
      partition: 0,
      log_seq: 0,
      log_index: -1,
      died_at: time.getTime(),
      org_id: '',
      format: '',
      event_hex: '',
      trace_id: '',
      received_at: 0,
      body: Buffer.from(data),
    };
  }
}

/** Returns true for the letter of an event; the letter of a whole message or of other work cannot be replayed. */
export const isReplayable = ({ letter }: StoredLetter): boolean => letter.org_id !== '';

/**
 * Sends the event of a letter through the ingest log again and deletes the letter.
 * @throws NotReplayable; Error when NATS does not answer
 */
export async function replayLetter(log: Letters, letterOf: StoredLetter): Promise<void> {
  const { seq, letter } = letterOf;
  if (!isReplayable(letterOf))
    throw new NotReplayable(`dead letter ${seq} is not an event that can be replayed (${letter.reason})`);
  const { org_id, event_hex, trace_id, received_at, partition } = letter;
  const body = await bodyOf(log, letterOf);
  const event = { org_id, event_hex, trace_id, received_at, format: letter.format as SourceFormat, body };
  // The message id makes it safe to repeat a replay that was interrupted between its two steps.
  await sendEvent(log, ingestSubject(partition), event, `replay:${seq}:${letter.died_at}`);
  await log.jsm.streams.deleteMessage(DEAD_LETTERS_STREAM, seq);
}

/** Deletes a letter and overwrites it on disk. */
export async function deleteLetter(log: Letters, seq: number): Promise<void> {
  await log.jsm.streams.deleteMessage(DEAD_LETTERS_STREAM, seq, true);
}

/**
 * Returns the event that the ingest log contains at a position, with the subject of its partition;
 * null for none.
 */
export async function eventAt(
  log: Letters,
  logSeq: number,
  logIndex: number,
): Promise<{ subject: string; event: IngestEvent } | null> {
  // Positions are the store's; those of the log begin after its base.
  const base = (await logBaseReader(log)()) ?? 0;
  const place = logSeq <= base ? null : log.streams.layout.at(logSeq - base);
  if (place === null) return null;
  const message = await log.jsm.streams.getMessage(place.stream.name, { seq: place.seq });
  if (message === null) return null;
  const event = ingestBatchCodec.decode(message.data, message.header.get(FINGERPRINT_HEADER)).events[logIndex];
  if (event === undefined) return null;
  const partition = partitionOf(event.org_id, event.trace_id, await fixedPartitions(log, 1));
  return { subject: message.subject === place.stream.mixed ? ingestSubject(partition) : message.subject, event };
}

/** Publishes one event to the ingest log. */
export async function sendEvent(log: Letters, subject: string, event: IngestEvent, msgID: string): Promise<void> {
  const head = headers();
  head.set(FINGERPRINT_HEADER, ingestBatchCodec.fingerprint);
  await log.js.publish(subject, ingestBatchCodec.encode({ events: [event] }), { headers: head, msgID });
}

/**
 * Returns the body of the event as it was sent.
 * @throws NotReplayable when neither the letter nor the log contains it
 */
async function bodyOf(log: Letters, { seq, letter, bodyBytes }: StoredLetter): Promise<string> {
  if (bodyBytes === null) return letter.body.toString('utf8');
  const event = (await eventAt(log, letter.log_seq, letter.log_index))?.event;
  if (event?.event_hex === letter.event_hex && event.org_id === letter.org_id) return event.body;
  throw new NotReplayable(`dead letter ${seq} contains only a part of its event, and the log no longer has the event`);
}
