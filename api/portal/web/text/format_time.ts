// How the portal writes moments: in the person's zone or in UTC, and the zone is always named where
// a date stands alone. Pure; one set of Intl formatters for each zone, made on first use.
import { NONE } from './format.ts';

export type Zone = 'local' | 'utc';

interface Formatters {
  minute: Intl.DateTimeFormat;
  time: Intl.DateTimeFormat;
  dateTime: Intl.DateTimeFormat;
  day: Intl.DateTimeFormat;
  zone: Intl.DateTimeFormat;
}

const LOCALE = 'en-GB';
const made = new Map<Zone, Formatters>();

function formatters(zone: Zone): Formatters {
  const found = made.get(zone);
  if (found !== undefined) return found;
  const timeZone = zone === 'utc' ? { timeZone: 'UTC' } : {};
  const minute = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23', ...timeZone } as const;
  const clock = { ...minute, second: '2-digit' } as const;
  const day = { day: 'numeric', month: 'short', ...timeZone } as const;
  const set = {
    minute: new Intl.DateTimeFormat(LOCALE, minute),
    time: new Intl.DateTimeFormat(LOCALE, clock),
    dateTime: new Intl.DateTimeFormat(LOCALE, { ...day, year: 'numeric', ...clock }),
    day: new Intl.DateTimeFormat(LOCALE, day),
    zone: new Intl.DateTimeFormat(LOCALE, { timeZoneName: 'short', ...timeZone }),
  };
  made.set(zone, set);
  return set;
}

/** A moment as the API writes it, or milliseconds since the epoch. */
export type Moment = string | number | null | undefined;

/** Returns milliseconds since the epoch; null for a text that is no moment. */
export function millis(moment: Moment): number | null {
  if (moment === null || moment === undefined) return null;
  const at = typeof moment === 'number' ? moment : Date.parse(moment);
  return Number.isFinite(at) ? at : null;
}

/** Returns the time of day: 12:04:31. */
export function timeOfDay(moment: Moment, zone: Zone): string {
  const at = millis(moment);
  return at === null ? NONE : formatters(zone).time.format(at);
}

/** Returns day and time with the zone: 23 Nov 2026, 12:04:31 UTC. */
export function fullTime(moment: Moment, zone: Zone): string {
  const at = millis(moment);
  return at === null ? NONE : `${formatters(zone).dateTime.format(at)} ${zoneName(zone, at)}`;
}

/** Returns the time of day where the moment is on the same day as now, else the day and the time. */
export function listTime(moment: Moment, zone: Zone, now: number): string {
  const at = millis(moment);
  if (at === null) return NONE;
  const { day: days, time } = formatters(zone);
  return days.format(at) === days.format(now) ? time.format(at) : `${days.format(at)} ${time.format(at)}`;
}

const MINUTE_MS = 60_000;
const DAY_MS = 1440 * MINUTE_MS;

/**
 * Returns the labels of an axis of time. A label has seconds only where the step is shorter than a minute,
 * and its day only where that differs from the label before, or from today for the first one.
 */
export function axisTimes(moments: readonly number[], step_ms: number, zone: Zone, now: number): string[] {
  const { day: days, time, minute } = formatters(zone);
  const clock = step_ms < MINUTE_MS ? time : minute;
  return moments.map((at, index) => {
    const day = days.format(at);
    if (step_ms >= DAY_MS) return day;
    return day === days.format(moments[index - 1] ?? now) ? clock.format(at) : `${day} ${clock.format(at)}`;
  });
}

/** Returns the short name of the zone at a moment: UTC, GMT+1. */
export function zoneName(zone: Zone, at: number): string {
  const part = formatters(zone)
    .zone.formatToParts(at)
    .find(({ type }) => type === 'timeZoneName');
  return part?.value ?? 'UTC';
}
