// Reads the messages of a batch: their events and corrections, in slices, and single events again for
// dead letters. A message that cannot be read becomes a dead letter as a whole.
import { costCorrectionsCodec, ingestBatchCodec, type IngestEvent, UnknownSchemaError } from '../../schemas/codec.ts';
import { partitionOf } from '../domain/traces/ids.ts';
import { type Correction, correctionsOf } from '../landing/corrections.ts';
import type { EventOf } from '../landing/landing_block.ts';
import { eventKey } from '../landing/landing_row.ts';
import { LIMITS } from '../limits.ts';
import type { DeadReason, LoggedEvent } from '../stage.ts';
import type { DeadLetterEntry, PrepareDeps, TakenMessage } from './prepare.ts';

/** The events of a slice as they were logged, by eventKey. */
export type Sources = ReadonlyMap<string, LoggedEvent>;

export const sourcesOf = (events: readonly LoggedEvent[]): Sources =>
  new Map(events.map((event) => [eventKey(event), event]));

/**
 * Returns a look-up of the events of some messages, which reads a message again, for the few that
 * become dead letters.
 *
 * @param held events of earlier messages, by eventKey
 */
export function eventsOf(
  { logBase }: Pick<PrepareDeps, 'logBase'>,
  messages: readonly TakenMessage[],
  held: Sources,
): EventOf {
  let bySeq: ReadonlyMap<number, TakenMessage> | null = null;
  let last: { log_seq: number; events: readonly IngestEvent[] } = { log_seq: -1, events: [] };
  return (position) => {
    const { partition, log_seq, log_index } = position;
    const known = held.get(eventKey(position));
    if (known !== undefined) return known;
    bySeq ??= new Map(messages.map((message) => [logBase + message.position, message]));
    const message = bySeq.get(log_seq);
    if (message === undefined) return null;
    if (last.log_seq !== log_seq)
      last = { log_seq, events: ingestBatchCodec.decode(message.data, message.fingerprint).events };
    const event = last.events[log_index];
    return event === undefined ? null : { ...event, partition, log_seq, log_index };
  };
}

export const bytesOf = (messages: readonly TakenMessage[]): number =>
  messages.reduce((sum, { data }) => sum + data.length, 0);

/** Yields the messages of a batch in slices of LIMITS.slice_bytes. */
export function* slices(messages: readonly TakenMessage[]): Generator<TakenMessage[]> {
  let slice: TakenMessage[] = [];
  let bytes = 0;
  for (const message of messages) {
    slice.push(message);
    bytes += message.data.length;
    if (bytes < LIMITS.slice_bytes) continue;
    yield slice;
    slice = [];
    bytes = 0;
  }
  if (slice.length > 0) yield slice;
}

/**
 * Returns the events of a message. A message of corrections has none, and adds to `corrections`.
 */
export function readMessage(
  deps: PrepareDeps,
  message: TakenMessage,
  deadLetters: DeadLetterEntry[],
  corrections: Correction[],
): LoggedEvent[] {
  const logSeq = deps.logBase + message.position;
  try {
    if (message.fingerprint === costCorrectionsCodec.fingerprint) {
      const sent = costCorrectionsCodec.decode(message.data, message.fingerprint);
      if (!deps.isDeleted(sent.org_id)) corrections.push(...correctionsOf(sent, message.partition, logSeq));
      return [];
    }
    const { events } = ingestBatchCodec.decode(message.data, message.fingerprint);
    return events.flatMap((event, index) => {
      if (deps.isDeleted(event.org_id)) return [];
      const partition = message.partition ?? partitionOf(event.org_id, event.trace_id, deps.partitions);
      return message.partitions.has(partition) ? [{ ...event, partition, log_seq: logSeq, log_index: index }] : [];
    });
  } catch (error) {
    const reason: DeadReason = error instanceof UnknownSchemaError ? 'unknown_schema' : 'unreadable_message';
    const detail = error instanceof Error ? error.message : String(error);
    deadLetters.push({
      dead: {
        step: 'decode',
        reason,
        detail,
        position: { partition: message.partition ?? Math.min(...message.partitions), log_seq: logSeq, log_index: -1 },
      },
      event: null,
      raw: message.data,
    });
    deps.observer.dead('decode', reason, 1);
    return [];
  }
}
