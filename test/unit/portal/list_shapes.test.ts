import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { barAt, barsOf, chosenTime, totalsOf, type Bucket } from '../../../api/portal/web/lists/histogram_shape.ts';
import { boundsOf, handlesOf, movedHandle } from '../../../api/portal/web/lists/value_range.ts';

const bucket = (at: number, traces: number, errors = 0, timeouts = 0): Bucket => ({
  start_ms: at * 1000,
  traces,
  errors,
  timeouts,
});

describe('the histogram over a list', () => {
  const bars = barsOf([bucket(0, 4, 1, 1), bucket(1, 8), bucket(2, 0)], 1000);

  it('stacks successes, timeouts and errors up to the highest bucket', () => {
    expect(bars.map(({ success, timeout, error }) => [success, timeout, error])).toEqual([
      [0.25, 0.125, 0.125],
      [1, 0, 0],
      [0, 0, 0],
    ]);
  });

  it('fills the width without gaps and overlaps', () => {
    const counts = fc.array(fc.nat(1000), { minLength: 1, maxLength: 100 });
    fc.assert(
      fc.property(counts, (traces) => {
        const drawn = barsOf(
          traces.map((count, at) => bucket(at, count)),
          1000,
        );
        for (const [at, { x, width }] of drawn.entries()) expect(x + width).toBeCloseTo((at + 1) / traces.length);
      }),
    );
  });

  it('draws no bar without buckets', () => {
    expect(barsOf([], 1000)).toEqual([]);
  });

  it('finds the bar under a pointer, and the nearest one beyond the edges', () => {
    expect([-0.1, 0, 0.34, 0.99, 1.2].map((share) => barAt(bars, share))).toEqual([0, 0, 1, 2, 2]);
  });

  it('chooses whole buckets in either direction of a drag', () => {
    const chosen = { since_ms: 1000, until_ms: 2999 };
    expect(chosenTime(bars, 1, 2)).toEqual(chosen);
    expect(chosenTime(bars, 2, 1)).toEqual(chosen);
    expect(chosenTime(bars, 0, 7)).toBeNull();
  });

  it('adds up what it shows', () => {
    expect(totalsOf([bucket(0, 4, 1, 1), bucket(1, 8, 2)])).toEqual({ traces: 12, errors: 3, timeouts: 1 });
  });
});

describe('the two handles of a value range', () => {
  const buckets = [0, 10, 100, 1000].map((from) => ({
    from,
    to: from === 1000 ? null : Math.max(10, from * 10),
    traces: 1,
  }));

  it('stand at both ends without a minimum and a maximum', () => {
    expect(handlesOf(buckets, null, null)).toEqual({ low: 0, high: 4 });
    expect(boundsOf(buckets, { low: 0, high: 4 })).toEqual({ min: null, max: null });
  });

  it('leave out no value that the filter keeps', () => {
    expect(handlesOf(buckets, 50, 500)).toEqual({ low: 1, high: 3 });
    expect(boundsOf(buckets, { low: 1, high: 3 })).toEqual({ min: 10, max: 1000 });
  });

  it('stay one bucket apart and within the ends', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom('low' as const, 'high' as const), fc.integer({ min: -9, max: 9 }))),
        (moves) => {
          const end = moves.reduce((at, [which, by]) => movedHandle(at, which, by, 4), { low: 0, high: 4 });
          expect(end.low).toBeGreaterThanOrEqual(0);
          expect(end.low).toBeLessThan(end.high);
          expect(end.high).toBeLessThanOrEqual(4);
        },
      ),
    );
  });
});
