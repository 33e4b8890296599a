// How the pages of the portal write numbers, durations and moments.
import { describe, expect, it } from 'vitest';
import {
  bytes,
  compact,
  count,
  duration,
  exact,
  money,
  moneyExact,
  percent,
  relativeTime,
  tokenFlow,
  tokens,
} from '../../../api/portal/web/text/format.ts';
import { axisTimes, fullTime, listTime, millis, timeOfDay } from '../../../api/portal/web/text/format_time.ts';

/** Replaces the no-break space before a unit, so that the cases below are readable. */
const plain = (text: string): string => text.replaceAll('\u00a0', ' ');

describe('formats of the portal', () => {
  it.each([
    [0, '$0'],
    [0.0041, '$0.0041'],
    [0.081, '$0.081'],
    [0.2, '$0.20'],
    [12.4, '$12.40'],
    [1204, '$1,204'],
    [-3, '-$3.00'],
    [0.000_000_01, '<$0.000001'],
    [null, '–'],
    [Number.NaN, '–'],
  ])('writes the amount %s as %s', (usd, text) => {
    expect(money(usd)).toBe(text);
  });

  it.each([
    [0, '0 ms'],
    [0.42, '0.4 ms'],
    [840, '840 ms'],
    [999.6, '1 s'],
    [2400, '2.4 s'],
    [59_960, '1 m'],
    [192_000, '3 m 12 s'],
    [3_599_900, '1 h'],
    [3_840_000, '1 h 4 m'],
    [86_399_999, '1 d'],
    [183_600_000, '2 d 3 h'],
    [-840, '-840 ms'],
    [undefined, '–'],
  ])('writes the duration of %s ms as %s', (ms, text) => {
    expect(plain(duration(ms))).toBe(text);
  });

  it.each([
    [0, '0'],
    [999, '999'],
    [12_400, '12.4k'],
    [999_499, '999k'],
    [999_500, '1M'],
    [3_100_000, '3.1M'],
    [7_000_000_000, '7B'],
  ])('writes the count %s in short as %s', (value, text) => {
    expect(compact(value)).toBe(text);
  });

  it('writes tokens with their unit, and input before output', () => {
    expect([tokens(12_400), tokens(1), tokens(null)].map(plain)).toEqual(['12.4k tokens', '1 token', '–']);
    expect(tokenFlow(41_200, 3100)).toBe('41.2k → 3.1k');
  });

  it('gives every digit where the exact value is asked for', () => {
    expect([exact(12_400.125), moneyExact(0.000_004_1), count(1204.4)]).toEqual(['12,400.125', '$0.0000041', '1,204']);
  });

  it('writes shares in percent and bytes in decimal units', () => {
    expect([percent(0.004), percent(0.12), percent(1)].map(plain)).toEqual(['0.4 %', '12 %', '100 %']);
    expect([bytes(840), bytes(1_204_000), bytes(0)].map(plain)).toEqual(['840 B', '1.2 MB', '0 B']);
  });

  it('writes how long ago a moment was, and how long it is until a later one', () => {
    const now = Date.UTC(2026, 10, 23, 12);
    const told = [0, 12_000, 180_000, 7_200_000, 3 * 86_400_000].map((ms) => relativeTime(now - ms, now));
    expect(told.map(plain)).toEqual(['now', '12 s ago', '3 min ago', '2 h ago', '3 d ago']);
    expect(plain(relativeTime(now + 86_400_000, now))).toBe('in 1 d');
  });

  it('names the zone of a full time and gives the day where it is another', () => {
    const at = '2026-11-23T12:04:31Z';
    expect(fullTime(at, 'utc')).toBe('23 Nov 2026, 12:04:31 UTC');
    expect(timeOfDay(at, 'utc')).toBe('12:04:31');
    expect(listTime(at, 'utc', Date.UTC(2026, 10, 23, 23))).toBe('12:04:31');
    expect(listTime(at, 'utc', Date.UTC(2026, 10, 24, 1))).toBe('23 Nov 12:04:31');
  });

  it('writes a dash for a text that is no moment', () => {
    expect([fullTime('soon', 'utc'), timeOfDay(null, 'utc'), millis('')]).toEqual(['–', '–', null]);
  });
});

describe('the labels of an axis of time', () => {
  const now = Date.UTC(2026, 10, 23, 15, 30);
  const hour = 3_600_000;

  it('have no seconds where the step is a minute or longer', () => {
    expect(axisTimes([now, now + 90_500], 60_000, 'utc', now)).toEqual(['15:30', '15:31']);
    expect(axisTimes([now, now + 90_500], 1_000, 'utc', now)).toEqual(['15:30:00', '15:31:30']);
  });

  it('name the day only where it changes', () => {
    const day = [now - 24 * hour, now - 12 * hour, now];
    expect(axisTimes(day, hour, 'utc', now)).toEqual(['22 Nov 15:30', '23 Nov 03:30', '15:30']);
  });

  it('are days alone where the step is a day', () => {
    expect(axisTimes([now - 48 * hour, now], 24 * hour, 'utc', now)).toEqual(['21 Nov', '23 Nov']);
  });
});
