import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { dateOf, dayOf, startOfDay, zeroFilled } from '../../../pipeline/domain/time/days.ts';
import { addOutcomes, NO_OUTCOMES, outcomesOf } from '../../../pipeline/domain/pricing/outcomes.ts';

describe('outcomes of an event', () => {
  it('outcomes of an event are exact amounts by name', () => {
    expect(outcomesOf({ leads: 0.1, tickets: 3, lost: -2, none: 0, tiny: 1e-7 })).toEqual(
      new Map([
        ['leads', 100_000_000_000n],
        ['tickets', 3_000_000_000_000n],
        ['lost', -2_000_000_000_000n],
        ['none', 0n],
        ['tiny', 100_000n],
      ]),
    );
  });

  it.each([
    undefined,
    null,
    3,
    'x',
    [1],
    {},
    { a: '3', b: null, c: NaN, d: Infinity, e: 1e13, f: {}, '': 1, [`x${'x'.repeat(128)}`]: 1 },
  ])('outcomes of an event are empty for %j', (attribute) => {
    expect(outcomesOf(attribute)).toBe(NO_OUTCOMES);
  });

  it('outcomes of an event are bounded in number, and well-formed', () => {
    expect(outcomesOf(Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`n${n}`, 1]))).size).toBe(64);
    expect([...outcomesOf({ 'a\ud800': 1, 'a\ud801': 2 })]).toEqual([['a\ufffd', 3_000_000_000_000n]]);
  });

  it('outcomes add up to the same in any order, and change none of their inputs', () => {
    const outcomes = fc
      .dictionary(
        fc.constantFrom('a', 'b', '__proto__', 'c d'),
        fc.integer({ min: -1000, max: 1000 }).map((cents) => cents / 100),
      )
      .map(outcomesOf);
    fc.assert(
      fc.property(fc.array(outcomes, { maxLength: 8 }), (list) => {
        const sizes = list.map(({ size }) => size);
        const sum = (of: typeof list) => Object.entries(Object.fromEntries(of.reduce(addOutcomes, NO_OUTCOMES))).sort();
        expect(sum(list)).toEqual(sum(list.toReversed()));
        expect(list.map(({ size }) => size)).toEqual(sizes);
      }),
    );
  });
});

describe('days', () => {
  it('days are counted in UTC', () => {
    expect(dayOf(Date.parse('2026-03-01T00:00:00Z'))).toBe(dayOf(Date.parse('2026-02-28T23:59:59.999Z')) + 1);
    expect(dateOf(dayOf(Date.parse('2026-03-01T12:00:00Z')))).toBe('2026-03-01');
    expect(startOfDay(dayOf(Date.parse('2026-03-01T12:00:00Z')))).toBe(Date.parse('2026-03-01T00:00:00Z'));
  });

  it('days stay within what the store can represent', () => {
    expect([dayOf(-5), dayOf(0), dayOf(Number.MAX_SAFE_INTEGER)]).toEqual([0, 0, 65_535]);
  });

  it('days without a total count 0', () => {
    expect(zeroFilled(new Map([[2, 5n]]), 1, 4)).toEqual([0n, 5n, 0n]);
    expect(zeroFilled(new Map(), 4, 4)).toEqual([]);
    expect(zeroFilled(new Map(), 5, 4)).toEqual([]);
  });
});
