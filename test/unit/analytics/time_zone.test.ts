// Buckets of a time zone follow its calendar through changes of daylight-saving time.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GRANULARITIES, isTimeZone, TimeZone } from '../../../sql/analytics/time_zone.ts';

const HOUR = 3_600_000;
const at = (text: string): number => Date.parse(text);
const starts = (zone: string, granularity: 'hour' | 'day' | 'week' | 'month', since: string, until: string): string[] =>
  new TimeZone(zone).buckets(granularity, at(since), at(until), 1000).map(({ start }) => new Date(start).toISOString());

it.each([
  ['Europe/Berlin', '2026-03-28T23:00:00Z', 23],
  ['Europe/Berlin', '2026-10-24T22:00:00Z', 25],
  ['America/New_York', '2026-03-08T05:00:00Z', 23],
  ['America/New_York', '2026-11-01T04:00:00Z', 25],
  ['Asia/Kolkata', '2026-03-28T18:30:00Z', 24],
  ['UTC', '2026-03-29T00:00:00Z', 24],
  // The clock goes forward at midnight, so the day begins at 01:00.
  ['Asia/Beirut', '2026-03-28T22:00:00Z', 23],
])('a day in %s from %s has %i hours', (zone, since, hours) => {
  const days = new TimeZone(zone).buckets('day', at(since), at(since) + 26 * HOUR, 10);
  expect(days[0]?.start).toBe(at(since));
  expect(((days[1]?.start ?? 0) - (days[0]?.start ?? 0)) / HOUR).toBe(hours);
});

it('has both hours that a clock shows twice', () => {
  expect(starts('Europe/Berlin', 'hour', '2026-10-25T00:00:00Z', '2026-10-25T03:00:00Z')).toEqual([
    '2026-10-25T00:00:00.000Z',
    '2026-10-25T01:00:00.000Z',
    '2026-10-25T02:00:00.000Z',
  ]);
});

it('begins hours on the half hour where the zone does', () => {
  expect(starts('Asia/Kolkata', 'hour', '2026-01-01T00:00:00Z', '2026-01-01T01:00:00Z')).toEqual([
    '2025-12-31T23:30:00.000Z',
    '2026-01-01T00:30:00.000Z',
  ]);
});

it('begins weeks on Monday and months on their first day', () => {
  expect(starts('Europe/Berlin', 'week', '2026-03-25', '2026-04-01')).toEqual([
    '2026-03-22T23:00:00.000Z',
    '2026-03-29T22:00:00.000Z',
  ]);
  expect(starts('UTC', 'month', '2026-01-31', '2026-03-01T00:00:01Z')).toEqual([
    '2026-01-01T00:00:00.000Z',
    '2026-02-01T00:00:00.000Z',
    '2026-03-01T00:00:00.000Z',
  ]);
});

describe('the buckets of any time', () => {
  const zone = fc.constantFrom(
    'UTC',
    'Europe/Berlin',
    'America/Santiago',
    'Asia/Beirut',
    'Asia/Kathmandu',
    'Africa/Cairo',
  );
  const since = fc.integer({ min: at('2015-01-01'), max: at('2027-01-01') });

  it('cover it without gaps, in order, under different keys', () => {
    fc.assert(
      fc.property(
        zone,
        fc.constantFrom(...GRANULARITIES),
        since,
        fc.integer({ min: 1, max: 72 * HOUR }),
        (name, granularity, from, length) => {
          const buckets = new TimeZone(name).buckets(granularity, from, from + length, 10_000);
          const [first] = buckets;
          expect(first?.start).toBeLessThanOrEqual(from);
          for (const [index, { start }] of buckets.entries()) {
            if (index > 0) expect(start).toBeGreaterThan(buckets[index - 1]?.start ?? 0);
            expect(start).toBeLessThan(from + length);
          }
          expect(new Set(buckets.map(({ key }) => key)).size).toBe(buckets.length);
        },
      ),
      { numRuns: 60 },
    );
  });
});

it('stops at the maximum number of buckets and one more', () => {
  expect(new TimeZone('UTC').buckets('minute', 0, 10 * HOUR, 5)).toHaveLength(6);
});

it.each([
  ['Europe/Berlin', true],
  ['UTC', true],
  ['Mars/Base', false],
  ["'; DROP", false],
])('knows %s as a time zone: %s', (name, known) => {
  expect(isTimeZone(name)).toBe(known);
});
