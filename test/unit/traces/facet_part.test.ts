import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Periods, slicesOf, tracesOf } from '../../../api/telemetry/traces/facet_part.ts';
import '../../support/properties.ts';

const HOUR_MS = 3_600_000;
const evenly = (hours: number, traces: number): Periods => ({
  period_ms: HOUR_MS,
  periods: Array.from({ length: hours }, (_, n) => ({ period: 1000 + n, traces })),
});

/** Returns the traces between two times, if those of a period are spread evenly. */
const tracesBetween = ({ period_ms, periods }: Periods, from: number, to: number): number =>
  periods.reduce((sum, { period, traces }) => {
    const [begin, end] = [Math.max(from, period * period_ms), Math.min(to, (period + 1) * period_ms)];
    return sum + (Math.max(0, end - begin) / period_ms) * traces;
  }, 0);

it('slices hold their share of the traces, wherever these are, in order and apart', () => {
  const periods = fc
    .uniqueArray(
      fc.record({ period: fc.integer({ min: 0, max: 500_000 }), traces: fc.integer({ min: 1, max: 1e6 }) }),
      {
        selector: ({ period }) => period,
        minLength: 1,
        maxLength: 50,
      },
    )
    .map((list) => list.toSorted((a, b) => a.period - b.period));
  fc.assert(
    fc.property(periods, fc.integer({ min: 2, max: 40 }), (list, share) => {
      const counted = { period_ms: HOUR_MS, periods: list };
      const slices = slicesOf(counted, share);
      const within = slices.reduce((sum, { from_ms, to_ms }) => sum + tracesBetween(counted, from_ms, to_ms), 0);
      // Slices end with whole milliseconds.
      const rounding = (slices.length * 2 * Math.max(...list.map(({ traces }) => traces))) / HOUR_MS;
      expect(Math.abs(within - tracesOf(counted) / share)).toBeLessThanOrEqual(rounding + 1);
      for (const [at, { from_ms, to_ms }] of slices.entries()) {
        expect(to_ms).toBeGreaterThan(from_ms);
        expect(from_ms).toBeGreaterThanOrEqual((slices[at - 1]?.to_ms ?? 0) - 1);
      }
    }),
  );
});

it('slices of as many days as there are slices do not begin at one time of day', () => {
  const hours = slicesOf(evenly(24 * 24, 100), 4).map(({ from_ms }) => new Date(from_ms).getUTCHours());
  expect(new Set(hours).size).toBe(4);
});
