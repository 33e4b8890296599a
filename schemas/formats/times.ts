// Parses ISO 8601 times of ingest events and checks the rules that tie an event's times together.
// The functions take texts and milliseconds, and return milliseconds since the epoch, or a refusal.
// Pure: the clock is an argument.
import type { Refusal } from './refusal.ts';

/** Maximum distance of an event's times into the future, for a sender whose clock is fast. */
const AHEAD_MAX_MS = 5 * 60 * 1000;
/** Longest duration of an event, about 31 years: received - duration stays after 1970. */
export const DURATION_MAX_MS = 1_000_000_000_000;

const ISO = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(?:(Z|z)|([+-])(\d\d):?(\d\d))?$/;

/**
 * Returns the milliseconds since the epoch of an ISO 8601 date and time; NaN for anything else,
 * including a day that does not exist. Without an offset the time is UTC; digits below the
 * millisecond are dropped.
 */
export function isoMillis(text: string): number {
  return text.length === WRITTEN_LENGTH ? (writtenMillis(text) ?? anyMillis(text)) : anyMillis(text);
}

/** Length of a time as Date.toISOString writes it: YYYY-MM-DDTHH:mm:ss.sssZ. Nearly every event has this form. */
const WRITTEN_LENGTH = 24;
/** The last day that every month has. */
const DAY_MIN_LAST = 28;
const ZERO = 0x30;

/** Returns the milliseconds of a time in the form of WRITTEN_LENGTH; null where the general rules must decide. */
function writtenMillis(text: string): number | null {
  if (text[4] !== '-' || text[7] !== '-' || text[10] !== 'T') return null;
  if (text[13] !== ':' || text[16] !== ':' || text[19] !== '.' || text[23] !== 'Z') return null;
  const year = digits(text, 0, 4);
  const month = digits(text, 5, 7);
  const day = digits(text, 8, 10);
  const hour = digits(text, 11, 13);
  const minute = digits(text, 14, 16);
  const second = digits(text, 17, 19);
  const millis = digits(text, 20, 23);
  if (!(year >= 100 && month >= 1 && month <= 12 && day >= 1 && day <= DAY_MIN_LAST)) return null;
  if (!(hour <= 23 && minute <= 59 && second <= 59 && millis >= 0)) return null;
  return Date.UTC(year, month - 1, day, hour, minute, second, millis);
}

/** Returns the number that digits spell; NaN where another character is among them. */
function digits(text: string, from: number, to: number): number {
  let value = 0;
  for (let at = from; at < to; at++) {
    const digit = text.charCodeAt(at) - ZERO;
    if (digit < 0 || digit > 9) return NaN;
    value = value * 10 + digit;
  }
  return value;
}

function anyMillis(text: string): number {
  const part = ISO.exec(text);
  if (part === null) return NaN;
  const field = (index: number) => Number(part[index] ?? 0);
  const [year, month, day, hour, minute, second] = [field(1), field(2), field(3), field(4), field(5), field(6)];
  if (hour > 23 || minute > 59 || second > 59 || field(10) > 23 || field(11) > 59) return NaN;
  const midnight = Date.UTC(year, month - 1, day);
  const date = new Date(midnight);
  if (year < 100 || date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return NaN;
  const millis = Number((part[7] ?? '').padEnd(3, '0').slice(0, 3));
  const offset = (field(10) * 60 + field(11)) * 60_000 * (part[9] === '-' ? -1 : 1);
  return midnight + ((hour * 60 + minute) * 60 + second) * 1000 + millis - offset;
}

/**
 * Start and end of an event in milliseconds since the epoch, and whether the event names one of
 * them.
 */
export interface EventTimes {
  started_at: number;
  ended_at: number;
}

/**
 * Returns true for the request of a model call: every format of a model call names the model in it.
 * Other events may have an attribute `request`.
 */
const isModelCall = (request: unknown): boolean =>
  typeof request === 'object' && request !== null && typeof (request as Record<string, unknown>)['model'] === 'string';

/**
 * Returns the start that an event names: started_at, or the timestamp of an app or custom event. A
 * model call has no timestamp.
 */
function namedStart(event: Readonly<Record<string, unknown>>): { name: 'started_at' | 'timestamp'; at: number } | null {
  const start = event['started_at'];
  if (typeof start === 'string') return { name: 'started_at', at: isoMillis(start) };
  const timestamp = event['timestamp'];
  if (typeof timestamp !== 'string' || isModelCall(event['request'])) return null;
  const at = isoMillis(timestamp);
  return Number.isNaN(at) ? null : { name: 'timestamp', at };
}

/**
 * Returns an event's times as given. A missing one follows from duration_ms and the other; without
 * either, the end is the time received. Expects an event that passed checkEvent.
 */
export function eventTimes(
  event: Readonly<Record<string, unknown>>,
  durationMs: number,
  receivedAt: number,
): EventTimes {
  const start = namedStart(event);
  const end = event['ended_at'];
  if (start !== null) {
    return { started_at: start.at, ended_at: typeof end === 'string' ? isoMillis(end) : start.at + durationMs };
  }
  const ended_at = typeof end === 'string' ? isoMillis(end) : receivedAt;
  return { started_at: ended_at - durationMs, ended_at };
}

/**
 * Checks what needs a clock: no time of an event is before 1970 or more than 5 minutes after now,
 * and the end is not before the start.
 * @param value has passed checkEvent
 */
export function checkTimes(value: Readonly<Record<string, unknown>>, nowMs: number): { ok: true } | Refusal {
  const start = namedStart(value);
  if (start === null && typeof value['ended_at'] !== 'string') return { ok: true };
  const startName = start?.name ?? 'started_at';
  const times = eventTimes(value, eventDuration(value), nowMs);
  if (times.started_at < 0) return refuse(startName, 'lies before 1970');
  if (times.started_at > nowMs + AHEAD_MAX_MS) return refuse(startName, 'lies more than 5 minutes in the future');
  if (times.ended_at > nowMs + AHEAD_MAX_MS) return refuse('ended_at', 'lies more than 5 minutes in the future');
  if (times.ended_at < times.started_at) return refuse('ended_at', `lies before ${startName}`);
  return { ok: true };
}

/**
 * Returns the duration that an event names, in whole milliseconds: duration_ms, else
 * attributes.duration_ms (app events; the fractions of browsers are rounded), else 0.
 */
export function eventDuration(event: Readonly<Record<string, unknown>>): number {
  const own = event['duration_ms'];
  if (typeof own === 'number') return own;
  const attributes = event['attributes'];
  const given =
    typeof attributes === 'object' && attributes !== null
      ? (attributes as Record<string, unknown>)['duration_ms']
      : undefined;
  return typeof given === 'number' && given >= 0 && given <= DURATION_MAX_MS ? Math.round(given) : 0;
}

function refuse(path: string, message: string): Refusal {
  return { ok: false, path, message };
}
