// Days of costs, which are UTC days. Pure.
import { axisTimes } from '../../text/format_time.ts';

const DAY_MS = 86_400_000;

/** Returns the dates up to today (UTC), oldest first. */
export function lastDates(days: number, now: number): string[] {
  const today = Math.floor(now / DAY_MS);
  return Array.from({ length: days }, (_, at) => new Date((today - days + 1 + at) * DAY_MS).toISOString().slice(0, 10));
}

/** Returns the short names of dates: 23 Nov. */
export const dayTicks = (dates: readonly string[]): string[] =>
  axisTimes(
    dates.map((date) => Date.parse(`${date}T00:00:00Z`)),
    DAY_MS,
    'utc',
    0,
  );

/** Returns the address of the list of the traces of a period of days. */
export function daysHref(traces: string, from: string, to: string, filters: Readonly<Record<string, string>>): string {
  const until = new Date(Date.parse(`${to}T00:00:00Z`) + DAY_MS - 1).toISOString();
  return `${traces}?${new URLSearchParams({ since: `${from}T00:00:00.000Z`, until, sort: 'cost_usd', ...filters })}`;
}
