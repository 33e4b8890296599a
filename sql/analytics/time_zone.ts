// Calendar of a time zone: where its days, weeks and months begin, through changes of daylight-saving
// time. Instants are milliseconds since the epoch. Pure.

export const GRANULARITIES = ['minute', 'hour', 'day', 'week', 'month'] as const;
export type Granularity = (typeof GRANULARITIES)[number];

export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;
export const DAY_MS = 86_400_000;
const MONDAY = 1;
const DAYS_PER_WEEK = 7;

export interface Bucket {
  start: number;
  /** The name that the store gives it: an instant in seconds, or from a day on its local date. */
  key: string;
}

/** Returns true for a time zone that is known by this IANA name. */
export function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).format(0) !== '';
  } catch (error) {
    // Intl throws for a name that it does not know.
    if (error instanceof RangeError) return false;
    throw error;
  }
}

export class TimeZone {
  readonly name: string;
  readonly #format: Intl.DateTimeFormat;

  /** @throws RangeError for an unknown name */
  constructor(name: string) {
    this.name = name;
    this.#format = new Intl.DateTimeFormat('en-US', {
      timeZone: name,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
  }

  /** Returns the local time at an instant, as milliseconds of a clock that shows it as UTC. */
  #local(at: number): number {
    const parts = Object.fromEntries(this.#format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
    return Date.UTC(year, month - 1, day, hour, minute, second) + (((at % 1000) + 1000) % 1000);
  }

  /** Returns the first instant of a local date, which may be later than midnight. */
  #startOf(date: number): number {
    const guesses = [-DAY_MS, DAY_MS].map((shift) => date - (this.#local(date + shift) - (date + shift)));
    const valid = guesses.filter((at) => floor(this.#local(at), DAY_MS) === date);
    return Math.min(...(valid.length === 0 ? guesses : valid));
  }

  /** Returns the start of the bucket that contains an instant. */
  #floor(granularity: Granularity, at: number): number {
    const local = this.#local(at);
    if (granularity === 'minute') return floor(at, MINUTE_MS);
    if (granularity === 'hour') return at - (local - floor(local, HOUR_MS));
    return this.#startOf(dateOf(granularity, local));
  }

  /** Returns the buckets that intersect [since, until), oldest first; at most `max` and one more. */
  buckets(granularity: Granularity, since: number, until: number, max: number): Bucket[] {
    const found: Bucket[] = [];
    for (let start = this.#floor(granularity, since); start < until && found.length <= max;) {
      const date = dateOf(granularity, this.#local(start));
      found.push({
        start,
        key: isDated(granularity) ? new Date(date).toISOString().slice(0, 10) : String(start / 1000),
      });
      start = isDated(granularity)
        ? this.#startOf(next(granularity, date))
        : this.#floor(granularity, start + (granularity === 'minute' ? MINUTE_MS : HOUR_MS));
    }
    return found;
  }
}

const floor = (at: number, unit: number): number => Math.floor(at / unit) * unit;
const isDated = (granularity: Granularity): boolean => granularity !== 'minute' && granularity !== 'hour';

/** Returns the date on which the day, week or month of a local time begins. */
function dateOf(granularity: Granularity, local: number): number {
  const day = floor(local, DAY_MS);
  const date = new Date(day);
  if (granularity === 'week') return day - ((date.getUTCDay() + DAYS_PER_WEEK - MONDAY) % DAYS_PER_WEEK) * DAY_MS;
  return granularity === 'month' ? Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1) : day;
}

function next(granularity: Granularity, date: number): number {
  if (granularity !== 'month') return date + (granularity === 'week' ? DAYS_PER_WEEK : 1) * DAY_MS;
  const from = new Date(date);
  return Date.UTC(from.getUTCFullYear(), from.getUTCMonth() + 1, 1);
}
