// Times of events: the meaning of ISO 8601 texts, how missing times are derived, and which are
// rejected.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkTimes, DURATION_MAX_MS, eventDuration, eventTimes, isoMillis } from '../../../schemas/formats/times.ts';

const NOW = Date.parse('2026-02-01T00:00:00.000Z');
const MINUTE = 60_000;
const iso = (ms: number) => new Date(ms).toISOString();

describe('isoMillis', () => {
  it('isoMillis reads every instant that Date writes', () => {
    fc.assert(
      fc.property(
        fc.date({ min: new Date('0100-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59Z'), noInvalidDate: true }),
        (date) => {
          expect(isoMillis(date.toISOString())).toBe(date.getTime());
        },
      ),
    );
  });

  it.each([
    ['2026-01-31T12:00:00Z', '2026-01-31T12:00:00.000Z'],
    ['2026-01-31T12:00:00.123456789Z', '2026-01-31T12:00:00.123Z'],
    ['2026-01-31T12:00:00.5Z', '2026-01-31T12:00:00.500Z'],
    ['2026-01-31T12:00:00.123456+00:00', '2026-01-31T12:00:00.123Z'],
    ['2026-01-31T12:00:00', '2026-01-31T12:00:00.000Z'],
    ['2026-01-31T12:00+05:30', '2026-01-31T06:30:00.000Z'],
    ['2026-01-31T23:00:00-0300', '2026-02-01T02:00:00.000Z'],
    ['2024-02-29T00:00:00Z', '2024-02-29T00:00:00.000Z'],
  ])('isoMillis reads %s as %s', (text, expected) => {
    expect(iso(isoMillis(text))).toBe(expected);
  });

  it.each([
    '',
    '2026',
    '2026-01-31',
    '2026-02-30T00:00:00Z',
    '2025-02-29T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-00-10T00:00:00Z',
    '2026-01-01T24:00:00Z',
    '2026-01-01T00:60:00Z',
    '2026-01-01T00:00:61Z',
    '2026-01-01 00:00:00Z',
    '1767225600',
    '2026-01-01T00:00:00+24:00',
    '2026-01-01T00:00:00Z\n',
  ])('isoMillis rejects %j', (text) => {
    expect(isoMillis(text)).toBeNaN();
  });
});

describe('eventTimes', () => {
  it.each([
    [{}, NOW - 800, NOW],
    [{ ended_at: iso(NOW - 5000) }, NOW - 5800, NOW - 5000],
    [{ started_at: iso(NOW - 5000) }, NOW - 5000, NOW - 4200],
    [{ started_at: iso(NOW - 5000), ended_at: iso(NOW - 1000) }, NOW - 5000, NOW - 1000],
    [{ timestamp: iso(NOW - 9000) }, NOW - 9000, NOW - 8200],
    [{ timestamp: iso(NOW - 9000), request: { model: 'gpt-4o' } }, NOW - 800, NOW],
    // An app's own request is an attribute of its event.
    [{ timestamp: iso(NOW - 9000), request: { url: '/x' } }, NOW - 9000, NOW - 8200],
    [{ timestamp: iso(NOW - 9000), request: null }, NOW - 9000, NOW - 8200],
    [{ timestamp: 'no time' }, NOW - 800, NOW],
  ])('eventTimes of %j', (event, started_at, ended_at) => {
    expect(eventTimes(event, 800, NOW)).toEqual({ started_at, ended_at });
  });
});

describe('eventDuration', () => {
  it.each([
    [{ duration_ms: 12 }, 12],
    [{ duration_ms: 12, attributes: { duration_ms: 99 } }, 12],
    [{ attributes: { duration_ms: 12.6 } }, 13],
    [{ attributes: { duration_ms: -1 } }, 0],
    [{ attributes: { duration_ms: 'x' } }, 0],
    [{ attributes: null }, 0],
    [{}, 0],
  ])('eventDuration of %j is %i ms', (event, expected) => {
    expect(eventDuration(event)).toBe(expected);
  });
});

describe('checkTimes', () => {
  it.each([
    [{}, true],
    [{ ended_at: iso(NOW + 5 * MINUTE) }, true],
    [{ ended_at: iso(NOW + 5 * MINUTE + 1) }, false],
    [{ started_at: iso(NOW + 5 * MINUTE) }, true],
    [{ started_at: iso(NOW + 5 * MINUTE + 1) }, false],
    [{ started_at: iso(NOW), duration_ms: 6 * MINUTE }, false],
    [{ started_at: '1970-01-01T00:00:00.000Z' }, true],
    [{ started_at: '1969-12-31T23:59:59.999Z' }, false],
    [{ ended_at: '1971-01-01T00:00:00Z', duration_ms: DURATION_MAX_MS }, false],
    [{ started_at: iso(NOW - 10), ended_at: iso(NOW - 10) }, true],
    [{ started_at: iso(NOW - 10), ended_at: iso(NOW - 11) }, false],
    [{ timestamp: iso(NOW + 6 * MINUTE) }, false],
    [{ duration_ms: DURATION_MAX_MS }, true],
  ])('checkTimes of %j: %s', (event, taken) => {
    expect(checkTimes(event, NOW).ok).toBe(taken);
  });

  it('checkTimes names the field', () => {
    expect(checkTimes({ started_at: iso(NOW - 10), ended_at: iso(NOW - 11) }, NOW)).toEqual({
      ok: false,
      path: 'ended_at',
      message: 'lies before started_at',
    });
  });
});
