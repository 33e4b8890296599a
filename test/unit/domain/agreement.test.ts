// Agreement between people, against values computed by hand.
import { describe, expect, it } from 'vitest';
import { agreementOf, type Rating } from '../../../pipeline/domain/annotation/agreement.ts';

/** Ratings of several people, one text of values for each: the nth letter is the value of the nth item. */
const ratings = (people: Record<string, string>): Rating[] =>
  Object.entries(people).flatMap(([person, values]) =>
    Array.from(values, (value, n) => ({ value, n })).flatMap(({ value, n }) =>
      value === '-' ? [] : [{ item: `item_${n}`, person, value }],
    ),
  );

describe('agreement', () => {
  it('of two people is the share of equal values, and kappa without what chance explains', () => {
    // 7 of 10 equal. Chance: 0.6 * 0.5 + 0.4 * 0.5 = 0.5. Kappa: (0.7 - 0.5) / 0.5 = 0.4.
    const { items, percent, kappa, disagreed } = agreementOf(ratings({ ann: 'yyyyyynnnn', ben: 'yyyynnnnny' }));
    expect({ items, percent, disagreed }).toEqual({
      items: 10,
      percent: 0.7,
      disagreed: ['item_4', 'item_5', 'item_9'],
    });
    expect(kappa).toBeCloseTo(0.4);
  });

  it('has a kappa of 1 for full agreement and below 0 when people agree less than chance', () => {
    expect(agreementOf(ratings({ ann: 'ynyn', ben: 'ynyn' })).kappa).toBe(1);
    expect(agreementOf(ratings({ ann: 'ynyn', ben: 'nyny' })).kappa).toBe(-1);
  });

  it('has no kappa when both people always chose the same value', () => {
    expect(agreementOf(ratings({ ann: 'yyy', ben: 'yyy' }))).toMatchObject({ percent: 1, kappa: null });
  });

  it('of more than two people weighs each pair by the items that they share', () => {
    // ann and ben: 4 items, kappa 1. ann and cay: 2 items, kappa -1. ben and cay: the same 2, kappa -1.
    const { kappa, percent } = agreementOf(ratings({ ann: 'ynyn', ben: 'ynyn', cay: 'ny--' }));
    expect(kappa).toBeCloseTo((4 - 2 - 2) / 8);
    expect(percent).toBe(0.5);
  });

  it('of items with one person each is unknown', () => {
    expect(agreementOf(ratings({ ann: 'yn--', ben: '--yn' }))).toEqual({
      items: 0,
      disagreed: [],
      percent: null,
      kappa: null,
    });
  });
});
