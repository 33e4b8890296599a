// Turns a parsed body into events of the ingest log. Takes JSON of one of the five formats; returns
// the events with ids and partitions, in order, or rejects the whole body. Maps nothing: a body
// goes into the log as it was received.
import { MESSAGE_BYTES_MAX } from '../../../schemas/streams.ts';
import { eventHex, partitionOf, spanIdOf, traceIdOf } from '../../../pipeline/domain/traces/ids.ts';
import { deeperThan, DEPTH_MAX } from '../../../pipeline/domain/text/nesting.ts';
import { checkEvent, type IngestFormat, splitBody } from '../../../schemas/formats/formats.ts';
import { checkTimes, eventDuration, eventTimes } from '../../../schemas/formats/times.ts';
import { tooOld } from '../../http/backfill.ts';
import { ApiError } from '../../http/errors.ts';
import type { OutgoingEvent } from './publisher.ts';

/** Room for the envelope of an event in its message. */
const ENVELOPE_BYTES_MAX = 4096;
/** A shorter text always fits into a message, whatever characters it holds. */
const SURELY_FITS_LENGTH = (MESSAGE_BYTES_MAX - ENVELOPE_BYTES_MAX) / 3;

/** The ids in the response to an ingest. */
interface EventIds {
  event_id: string;
  trace_id: string;
  span_id: string;
}

export interface ReadEvents {
  batch: boolean;
  events: OutgoingEvent[];
  ids: EventIds[];
}

export interface EventSource {
  format: IngestFormat;
  org_id: string;
  /** Milliseconds since the epoch. */
  received_at: number;
  partitions: number;
  /** True: events may be at most 400 days old. */
  backfill?: boolean;
}

/**
 * Checks a body and derives the ids of its events.
 * @throws ApiError decode_failed naming index and field; payload_too_large for an event that fits
 * into no message
 */
export function readEvents(body: unknown, source: EventSource): ReadEvents {
  const split = splitBody(source.format, body);
  if (!split.ok) throw decodeFailed(split.path === '' ? 'body' : split.path, split.message);
  const events: OutgoingEvent[] = [];
  const ids: EventIds[] = [];
  split.events.forEach((value, index) => {
    const where = split.batch ? `events[${index}]` : '';
    const checked = checkEvent(source.format, value);
    if (!checked.ok) throw decodeFailed(fieldOf(where, checked.path), checked.message);
    const times = checkTimes(checked.value, source.received_at);
    if (!times.ok) throw decodeFailed(fieldOf(where, times.path), times.message);
    const age = source.backfill === true ? ageProblem(checked.value, source.received_at) : null;
    if (age !== null) throw decodeFailed(fieldOf(where, 'started_at'), age);
    if (deeperThan(checked.value, DEPTH_MAX))
      throw decodeFailed(fieldOf(where, ''), `is nested deeper than ${DEPTH_MAX} levels`);
    const text = JSON.stringify(checked.value);
    if (text.length > SURELY_FITS_LENGTH && Buffer.byteLength(text) > MESSAGE_BYTES_MAX - ENVELOPE_BYTES_MAX) {
      throw new ApiError('payload_too_large', `${fieldOf(where, '')}: is too large as compact JSON`);
    }
    const hex = eventHex(text);
    const trace_id = traceIdOf(source.format, checked.value, hex);
    ids.push({ event_id: `evt_${hex}`, trace_id, span_id: spanIdOf(checked.value, hex) });
    events.push({
      event: {
        org_id: source.org_id,
        format: source.format,
        event_hex: hex,
        trace_id,
        received_at: source.received_at,
        body: text,
      },
      partition: partitionOf(source.org_id, trace_id, source.partitions),
      bytes: text.length,
    });
  });
  return { batch: split.batch, events, ids };
}

/** Returns why an event of the past is too old; null where it is not. */
const ageProblem = (event: Readonly<Record<string, unknown>>, now: number): string | null =>
  tooOld(eventTimes(event, eventDuration(event), now).started_at, now);

/** Returns the data of the response to an ingest. */
export function answerData({ batch, ids }: ReadEvents): unknown {
  return batch ? { ...ids[0], accepted: ids.length, events: ids } : ids[0];
}

function fieldOf(where: string, path: string): string {
  if (where === '') return path === '' ? 'body' : path;
  if (path === '') return where;
  return path.startsWith('[') ? `${where}${path}` : `${where}.${path}`;
}

function decodeFailed(field: string, message: string): ApiError {
  return new ApiError('decode_failed', `${field}: ${message}`);
}
