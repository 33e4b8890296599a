// ISO 8601 times of ingest events, and the rules that tie an event's times together.
// In: texts and milliseconds. Out: milliseconds since the epoch, or the refusal to show. Pure; the clock is an argument.
import type { Refusal } from './refusal.ts';

/** How far an event's times may lie ahead of our clock: room for a sender whose clock runs fast. */
const AHEAD_MAX_MS = 5 * 60 * 1000;
/** The longest duration an event may name, about 31 years: started_at = received - duration stays after 1970. */
export const DURATION_MAX_MS = 1_000_000_000_000;

const ISO = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(?:(Z|z)|([+-])(\d\d):?(\d\d))?$/;

/**
 * Milliseconds since the epoch of an ISO 8601 date and time; NaN for anything else, a day that does not exist included.
 * Without an offset it is UTC; digits below the millisecond are cut.
 */
export function isoMillis(text: string): number {
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

/** Start and end of an event in milliseconds, and whether a start or an end was named by the event. */
export interface EventTimes {
  started_at: number;
  ended_at: number;
}

/** Every format of a model call names the model in its request; what else is called so is an attribute of an app or custom event. */
const isModelCall = (request: unknown): boolean =>
  typeof request === 'object' && request !== null && typeof (request as Record<string, unknown>)['model'] === 'string';

/** The start that an event names: started_at, or the timestamp of an app or custom event (a model call has none). */
function namedStart(event: Readonly<Record<string, unknown>>): { name: 'started_at' | 'timestamp'; at: number } | null {
  const start = event['started_at'];
  if (typeof start === 'string') return { name: 'started_at', at: isoMillis(start) };
  const timestamp = event['timestamp'];
  if (typeof timestamp !== 'string' || isModelCall(event['request'])) return null;
  const at = isoMillis(timestamp);
  return Number.isNaN(at) ? null : { name: 'timestamp', at };
}

/**
 * An event's times: as given; one that is missing follows from duration_ms and the other; without either, the end is the
 * time received. Expects an event that passed checkEvent.
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
 * Checks what needs a clock: no time of an event is later than now + 5 minutes or before 1970, and it ends after it starts.
 * `value` has passed checkEvent.
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
 * The duration an event names, in whole milliseconds: duration_ms, else attributes.duration_ms (app events; a browser's
 * fractions are rounded), else 0.
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
