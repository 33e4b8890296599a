// The token bucket: exact counts, exact waits, and its bound over any sequence of requests.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  debit,
  fullBucket,
  leaveMissing,
  missing,
  refill,
  remaining,
  rescale,
  secondsUntilFull,
  secondsUntilGranted,
  take,
} from '../../../api/admission/rate/bucket.ts';

describe('a bucket', () => {
  test('a bucket grants its capacity at once and then one for each token that flows in', () => {
    const bucket = fullBucket(60, 30, 0);
    expect(Array.from({ length: 31 }, () => take(bucket, 1)).filter(Boolean)).toHaveLength(30);
    refill(bucket, 999);
    expect(take(bucket, 1)).toBe(false);
    refill(bucket, 1000);
    expect([take(bucket, 1), take(bucket, 1)]).toEqual([true, false]);
  });

  test('a bucket never exceeds its capacity, however long it rests, and grants nothing for time that runs back', () => {
    const bucket = fullBucket(1500, 200, 5000);
    debit(bucket, 10);
    refill(bucket, 4000);
    expect(remaining(bucket)).toBe(190);
    refill(bucket, 1e12);
    expect([remaining(bucket), missing(bucket), secondsUntilFull(bucket)]).toEqual([200, 0, 0]);
  });

  test('a bucket loses nothing to rounding when it is checked all the time', () => {
    const bucket = fullBucket(7, 3, 0);
    while (take(bucket, 1));
    let granted = 0;
    for (let now = 0.25; now < 3_600_000; now += 61.25) {
      refill(bucket, Math.min(now + 61.25, 3_600_000));
      if (take(bucket, 1)) granted++;
    }
    expect(granted).toBe(7 * 60);
  });

  test('a full bucket grants a cost above its capacity, and pays the excess off before it grants again', () => {
    const bucket = fullBucket(600, 100, 0);
    take(bucket, 1);
    expect([take(bucket, 250), secondsUntilGranted(bucket, 250)]).toEqual([false, 1]);
    refill(bucket, 100);
    expect([take(bucket, 250), remaining(bucket)]).toEqual([true, 0]);
    // 150 in debt at 10 a second.
    expect([secondsUntilGranted(bucket, 1), secondsUntilFull(bucket)]).toEqual([16, 25]);
    refill(bucket, 100 + 15_099);
    expect(take(bucket, 1)).toBe(false);
    refill(bucket, 100 + 15_100);
    expect(take(bucket, 1)).toBe(true);
  });

  test('a bucket goes into debt by what other processes granted', () => {
    const bucket = fullBucket(60, 30, 0);
    debit(bucket, 60);
    expect([take(bucket, 1), remaining(bucket), secondsUntilGranted(bucket, 1), secondsUntilFull(bucket)]).toEqual([
      false,
      0,
      31,
      60,
    ]);
  });

  test('a bucket is only ever lowered to what another process knows', () => {
    const bucket = fullBucket(60, 30, 0);
    debit(bucket, 20);
    const units = missing(bucket);
    const fresh = fullBucket(60, 30, 0);
    leaveMissing(fresh, units);
    expect(remaining(fresh)).toBe(10);
    debit(bucket, 5);
    leaveMissing(bucket, units);
    expect(remaining(bucket)).toBe(5);
  });

  test.each([
    ['a larger plan gives what it holds more at once', { used: 30, from: [60, 30], to: [1500, 200], left: 170 }],
    ['a smaller plan keeps what fits', { used: 10, from: [1500, 200], to: [60, 30], left: 30 }],
    ['a smaller plan gives nothing back', { used: 190, from: [1500, 200], to: [60, 30], left: 10 }],
    ['debt at the old rate is forgiven', { used: 260, from: [1500, 200], to: [60, 30], left: 0 }],
    ['another rate alone changes no level', { used: 3, from: [60, 30], to: [90, 30], left: 27 }],
  ] as const)('%s', (_what, { used, from, to, left }) => {
    const bucket = fullBucket(from[0], from[1], 0);
    debit(bucket, used);
    rescale(bucket, to[0], to[1]);
    expect(remaining(bucket)).toBe(left);
  });
});

const rates = fc.record({
  per_minute: fc.integer({ min: 1, max: 100_000_000 }),
  capacity: fc.integer({ min: 1, max: 100_000 }),
});
/** Parts of a millisecond that add up without rounding, so that the test's own clock is exact. */
const waits = fc.integer({ min: 0, max: 800_000 }).map((eighths) => eighths / 8);
const steps = fc.array(fc.record({ wait_ms: waits, cost: fc.integer({ min: 1, max: 2000 }) }), {
  maxLength: 200,
});

test('over any costs at any times at most capacity + rate · t + the largest excess of a cost over the capacity is granted', () => {
  fc.assert(
    fc.property(rates, steps, ({ per_minute, capacity }, takes) => {
      const bucket = fullBucket(per_minute, capacity, 0);
      let now = 0;
      let granted = 0;
      let excess = 0;
      for (const { wait_ms, cost } of takes) {
        now += wait_ms;
        refill(bucket, now);
        if (take(bucket, cost)) {
          granted += cost;
          excess = Math.max(excess, cost - capacity);
        }
        expect(granted).toBeLessThanOrEqual(capacity + (per_minute * now) / 60_000 + excess);
        expect(remaining(bucket)).toBeGreaterThanOrEqual(0);
        expect(remaining(bucket)).toBeLessThanOrEqual(capacity);
      }
    }),
  );
});

test('a rejected cost is granted after exactly the seconds named, and not a second earlier', () => {
  fc.assert(
    fc.property(rates, steps, ({ per_minute, capacity }, takes) => {
      const bucket = fullBucket(per_minute, capacity, 0);
      let now = 0;
      for (const { wait_ms, cost } of takes) {
        now += wait_ms;
        refill(bucket, now);
        if (take(bucket, cost)) continue;
        const seconds = secondsUntilGranted(bucket, cost);
        const early = { ...bucket };
        refill(early, now + (seconds - 1) * 1000);
        expect(take(early, cost)).toBe(false);
        now += seconds * 1000;
        refill(bucket, now);
        expect(take(bucket, cost)).toBe(true);
      }
    }),
  );
});
