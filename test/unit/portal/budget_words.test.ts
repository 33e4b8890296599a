// The pure parts of the budget, outcome and price pages: typed numbers, run rates, gauges, periods,
// lists of prices, and where the refusal of a request belongs on a form.
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { RequestError } from '../../../api/portal/web/client/error.ts';
import {
  dayWords,
  exactAmount,
  parseLimit,
  parseLimitOf,
  periodWords,
  rateOf,
  shareWords,
} from '../../../api/portal/web/screens/costs/amounts.ts';
import { formErrors } from '../../../api/portal/web/screens/costs/field_error.ts';
import { gaugeOf } from '../../../api/portal/web/screens/costs/gauge_shape.ts';
import { draftOf, limitsOf } from '../../../api/portal/web/screens/costs/key_draft.ts';
import {
  costAt,
  parseUsd,
  type Price,
  priceId,
  sortedPrices,
  stateOf,
  withPrice,
} from '../../../api/portal/web/screens/costs/price_list.ts';

const DAY = 86_400_000;

describe('a typed limit', () => {
  it.each([
    ['10000000', 10_000_000],
    ['10,000,000', 10_000_000],
    ['10 000 000', 10_000_000],
    ['10_000_000', 10_000_000],
    ['10M', 10_000_000],
    ['10 m', 10_000_000],
    ['1.1k', 1100],
    ['1.5k', 1500],
    ['2b', 2_000_000_000],
    ['0', 0],
    ['', null],
    ['  ', null],
  ])('"%s" is %s', (text, limit) => {
    expect(parseLimit(text)).toBe(limit);
  });

  it.each(['ten', '-1', '1.5', '1e9', '0x10', '10 MB', '99999999999999999', '1..5k'])('"%s" is no limit', (text) => {
    expect(parseLimit(text)).toBeUndefined();
  });

  it('is read as it was written', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1e15 }), (limit) => {
        expect(parseLimit(String(limit))).toBe(limit);
        expect(parseLimit(limit.toLocaleString('en-US'))).toBe(limit);
      }),
    );
  });
});

describe('the run rate', () => {
  const period = { start: 0, end: 30 * DAY, now: 10 * DAY };

  it('leads to the use at the end of the period and to the moment of the limit', () => {
    expect(rateOf({ used: 100, limit: 200 }, period)).toEqual({ projected: 300, reached_at: 20 * DAY });
    expect(rateOf({ used: 100, limit: 400 }, period)).toEqual({ projected: 300, reached_at: null });
    expect(rateOf({ used: 100, limit: null }, period)).toEqual({ projected: 300, reached_at: null });
  });

  it('names no moment for a limit that is reached, and none without use', () => {
    expect(rateOf({ used: 200, limit: 200 }, period).reached_at).toBeNull();
    expect(rateOf({ used: 0, limit: 200 }, period)).toEqual({ projected: 0, reached_at: null });
  });

  it('counts the first hours of a period as one day', () => {
    expect(rateOf({ used: 10, limit: null }, { ...period, now: 60_000 }).projected).toBe(300);
  });
});

describe('a gauge', () => {
  it('stands on the scale of the largest of use and limits', () => {
    const { used, soft, hard } = gaugeOf({ used: 50, projected: 60, soft_limit: 80, hard_limit: 100 });
    expect([used, soft, hard]).toEqual([0.49, 0.784, 0.98]);
  });

  it('shows no tick for a limit that is not set', () => {
    expect(gaugeOf({ used: 0, projected: 0, soft_limit: null, hard_limit: null })).toEqual({
      used: 0,
      projected: 0,
      soft: null,
      hard: null,
    });
  });

  it('keeps every place within its width, in order', () => {
    const amount = fc.double({ min: 0, max: 1e15, noNaN: true });
    const limit = fc.option(fc.integer({ min: 0, max: 1e15 }));
    fc.assert(
      fc.property(amount, amount, limit, limit, (used, more, soft_limit, hard_limit) => {
        const shape = gaugeOf({ used, projected: used + more, soft_limit, hard_limit });
        for (const place of [shape.used, shape.projected, shape.soft ?? 0, shape.hard ?? 0]) {
          expect(place).toBeGreaterThanOrEqual(0);
          expect(place).toBeLessThanOrEqual(1);
        }
        expect(shape.projected).toBeGreaterThanOrEqual(shape.used);
        if (hard_limit !== null && used >= hard_limit) expect(shape.used).toBeGreaterThanOrEqual(shape.hard ?? 0);
      }),
    );
  });
});

test.each([
  ['250', 250],
  ['$12.50', 12.5],
  ['1,000.25', 1000.25],
  ['', null],
  ['12k', undefined],
  ['-1', undefined],
])('the limit in USD %j is read as %s', (text, limit) => {
  expect(parseLimitOf('cost_usd', text)).toBe(limit);
});

describe('words', () => {
  it('name days and periods in UTC', () => {
    expect(dayWords('2026-10-14')).toBe('14 October');
    expect(periodWords('2026-10-01T00:00:00.000Z', '2026-11-01T00:00:00.000Z')).toBe('October 2026');
    expect(periodWords('2026-04-01T00:00:00.000Z', '2027-04-01T00:00:00.000Z')).toBe('1 April 2026 to 31 March 2027');
  });

  it('write amounts with their unit, and a share of nothing as a dash', () => {
    expect(exactAmount('storage_mb', 12.5)).toBe('12.5\u00a0MB');
    expect(exactAmount('cost_usd', 12.5)).toBe('$12.5');
    expect(shareWords(1, 4)).toBe('25\u00a0%');
    expect(shareWords(0, 0)).toBe('–');
  });
});

describe('the refusal of a form', () => {
  const refusal = (detail: string) => new RequestError(422, { code: 'invalid_request', detail, request_id: null });

  it('stands at the field that its detail names', () => {
    expect(formErrors(refusal('tokens.soft_limit: must be at most the hard limit (5)'), ['soft_limit'])).toEqual({
      fields: { soft_limit: 'Must be at most the hard limit (5)' },
      form: null,
    });
    expect(formErrors(refusal('thresholds[0].percent: must be a number'), ['percent']).fields).toEqual({
      percent: 'Must be a number',
    });
  });

  it('stands at the form where it names none of the fields', () => {
    const detail = 'The store of budgets cannot be written. Try again.';
    expect(formErrors(refusal(detail), ['soft_limit'])).toEqual({ fields: {}, form: detail });
    expect(formErrors(null, ['soft_limit'])).toEqual({ fields: {}, form: null });
  });
});

describe('own prices', () => {
  const price = (model: string, from?: string, until?: string): Price => ({
    model,
    input_usd_per_mtok: 1,
    output_usd_per_mtok: 2,
    ...(from === undefined ? {} : { from }),
    ...(until === undefined ? {} : { until }),
  });
  const list = [price('b'), price('A', '2026-01-01'), price('a'), price('A', '2026-06-01', '2026-07-01')];

  it('stand by model, the newest first', () => {
    expect(sortedPrices(list).map(({ model, from }) => [model, from])).toEqual([
      ['A', '2026-06-01'],
      ['A', '2026-01-01'],
      ['a', undefined],
      ['b', undefined],
    ]);
  });

  it('say which one calls of a day take', () => {
    const states = (day: string) => sortedPrices(list).map((one) => stateOf(one, list, day));
    expect(states('2025-12-31')).toEqual(['later', 'later', 'now', 'now']);
    expect(states('2026-06-15')).toEqual(['now', 'replaced', 'replaced', 'now']);
    expect(states('2026-07-01')).toEqual(['ended', 'now', 'replaced', 'now']);
  });

  it('are changed one by one, and not if the one to change is gone', () => {
    expect(withPrice(list, price('a'), null)?.map(priceId)).not.toContain(priceId(price('A')));
    expect(withPrice(list, null, price('c'))).toHaveLength(5);
    expect(withPrice(list, price('A', '2026-01-01'), price('a', '2026-02-01'))).toHaveLength(4);
    expect(withPrice(list, price('gone'), price('gone', '2026-02-01'))).toBeNull();
  });

  it('are amounts in USD, empty or refused', () => {
    expect(['2.50', '$ 0.0004', '', 'two', '-1', '1000001'].map(parseUsd)).toEqual([
      2.5,
      0.0004,
      null,
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('cost their tokens', () => {
    expect(costAt({ input_tokens: 1_000_000, output_tokens: 500_000 }, price('a'))).toBe(2);
  });
});

describe('the limits of a key', () => {
  const unlimited = {
    models: null,
    requests_per_minute: null,
    tokens_per_minute: null,
    budget: null,
    expires_at: null,
    labels: null,
    capture: 'full' as const,
  };

  it.each([
    ['without any limit', unlimited],
    ['with an end within a day', { ...unlimited, expires_at: '2026-03-01T12:34:56.000Z' }],
    [
      'with every limit',
      {
        models: ['gpt-4o*', 'our-*'],
        requests_per_minute: 600,
        tokens_per_minute: 1500,
        budget: { resource: 'cost_usd' as const, hard_limit: 12.5, period: 'week' as const },
        expires_at: '2026-03-02T00:00:00.000Z',
        labels: { user_id: 'ann', department: null },
        capture: 'usage' as const,
      },
    ],
  ])('%s stay as they are when nothing is typed', (_, limits) => {
    expect(limitsOf(draftOf(limits), limits)).toEqual(limits);
  });

  it('end after the day that is typed, in UTC', () => {
    const draft = { ...draftOf(unlimited), until: '2026-02-28' };
    expect(limitsOf(draft, unlimited)).toMatchObject({ expires_at: '2026-03-01T00:00:00.000Z' });
    expect(limitsOf({ ...draft, until: '' }, { ...unlimited, expires_at: '2026-03-01T00:00:00.000Z' })).toEqual(
      unlimited,
    );
  });
});
