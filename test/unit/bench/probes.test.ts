// The waits that events sent by a clock would have had, computed from events sent one after the
// other.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { withOmitted } from '../../bench/probes.ts';

test('a long wait counts for the probes that would have begun meanwhile', () => {
  expect(withOmitted([40, 250, 100], 100)).toEqual([40, 250, 150, 50, 100]);
});

test('no time is omitted or extended, and there are as many probes as the clock would have sent', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 5000 }), { maxLength: 50 }),
      fc.integer({ min: 1, max: 300 }),
      (times, every) => {
        const all = withOmitted(times, every);
        expect(all.length).toBe(times.reduce((sum, time) => sum + Math.ceil(time / every), 0));
        expect(all.every((time) => time > 0)).toBe(true);
        for (const time of times) expect(all).toContain(time);
        expect(Math.max(0, ...all)).toBe(Math.max(0, ...times));
      },
    ),
  );
});
