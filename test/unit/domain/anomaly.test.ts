import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type DayCost, findAnomaly, type JudgedDay } from '../../../pipeline/domain/stats/anomaly.ts';
import { usdToPico } from '../../../pipeline/domain/pricing/money.ts';
import { DEFAULT_ANOMALY_CONFIG } from '../../../schemas/records/cost_config.ts';

const cost = (day: number, usd: number | string, model = 'm', agent_id = 'a'): DayCost => ({
  day,
  model,
  agent_id,
  cost_pico_usd: usdToPico(usd),
});
/** Examines the last of the days from 100 on. */
function judge(totals: readonly (number | string)[], over: Partial<JudgedDay> = {}, config = DEFAULT_ANOMALY_CONFIG) {
  const day = 100 + totals.length - 1;
  return findAnomaly(
    { day, running: false, first_day: 100, costs: totals.map((usd, index) => cost(100 + index, usd)), ...over },
    config,
  );
}

describe('anomaly of a day', () => {
  it('the z-score of a day is its distance from the mean in sample standard deviations', () => {
    // Mean 5, squares 32, s = sqrt(32 / 7): the textbook's 2 4 4 4 5 5 7 9.
    const found = judge([2, 4, 4, 4, 5, 5, 7, 9, 12]);
    expect(found?.z).toBeCloseTo(7 / Math.sqrt(32 / 7), 12);
    expect(found).toMatchObject({ expected_pico_usd: usdToPico(5), actual_pico_usd: usdToPico(12) });
    expect(judge([2, 4, 4, 4, 5, 5, 7, 9, 11])).toBeNull();
    expect(judge([2, 4, 4, 4, 5, 5, 7, 9, 11], {}, { z_threshold: 2.8, lookback_days: 30 })?.z).toBeCloseTo(
      6 / Math.sqrt(32 / 7),
      12,
    );
  });

  it('an anomaly needs 7 days of data', () => {
    expect(judge([1, 2, 1, 2, 1, 2, 50])).toBeNull();
    expect(judge([1, 2, 1, 2, 1, 2, 1, 50])).not.toBeNull();
  });

  it('days without data count 0, from the first day with data', () => {
    const costs = [cost(100, 7), cost(107, 7)];
    // History 7 0 0 0 0 0 0: mean 1, s = sqrt(42 / 6) = sqrt 7.
    expect(
      findAnomaly({ day: 107, running: false, first_day: 100, costs }, { z_threshold: 2, lookback_days: 30 })?.z,
    ).toBeCloseTo(6 / Math.sqrt(7), 12);
    // All lookback days count for an organization that began long before.
    expect(
      findAnomaly({ day: 107, running: false, first_day: 3, costs: [cost(107, 7)] }, DEFAULT_ANOMALY_CONFIG)?.z,
    ).toBe(99);
  });

  it('no day before the look-back counts', () => {
    const totals = [1000, 1000, 1000, 2, 4, 4, 4, 5, 5, 7, 9, 12];
    expect(judge(totals)).toBeNull();
    expect(judge(totals, {}, { z_threshold: 3, lookback_days: 8 })?.z).toBeCloseTo(7 / Math.sqrt(32 / 7), 12);
  });

  it('a flat history that continues has no anomaly, and a deviation from it has the score 99', () => {
    const flat = Array.from({ length: 10 }, () => '0.1');
    expect(judge([...flat, '0.1'])).toBeNull();
    expect(judge([...flat, '0.100000000001'])).toMatchObject({ z: 99 });
    expect(judge([...flat, '0.05'])).toMatchObject({ z: -99 });
    expect(judge([0, 0, 0, 0, 0, 0, 0, 0, 1])).toMatchObject({ z: 99, expected_pico_usd: 0n });
  });

  it('the z-score is capped', () => {
    expect(judge([1, 1, 1, 1, 1, 1, 1, '1.000001', 1_000_000])?.z).toBe(99);
  });

  it('a day that cost too little is found once it is over', () => {
    const totals = [20, 21, 19, 20, 21, 19, 20, 0];
    expect(judge(totals)?.z).toBeLessThan(-3);
    expect(judge(totals, { running: true })).toBeNull();
  });

  it('an anomaly is attributed to the model and agent that deviate most from their own mean', () => {
    const costs = [
      ...Array.from({ length: 10 }, (_, index) => [
        cost(100 + index, 50, 'big', 'usual'),
        cost(100 + index, 1 + (index % 2), 'small', 'usual'),
      ]).flat(),
      cost(110, 52, 'big', 'usual'),
      cost(110, 9, 'small', 'runaway'),
      cost(110, 8, 'small', 'usual'),
    ];
    expect(
      findAnomaly({ day: 110, running: true, first_day: 100, costs }, DEFAULT_ANOMALY_CONFIG)?.attributed_to,
    ).toEqual({
      model: 'small',
      agent_id: 'runaway',
    });
  });

  it('the z-score does not depend on the order of costs, nor on the unit', () => {
    fc.assert(
      fc.property(
        fc.array(fc.bigInt({ min: 0n, max: 10n ** 15n }), { minLength: 8, maxLength: 40 }),
        fc.integer({ min: 1, max: 1000 }),
        (amounts, factor) => {
          const costs = amounts.map((cost_pico_usd, index) => ({
            day: 100 + index,
            model: `m${index % 3}`,
            agent_id: '',
            cost_pico_usd,
          }));
          const day = 100 + amounts.length - 1;
          const config = { z_threshold: 0.001, lookback_days: 365 };
          const found = findAnomaly({ day, running: false, first_day: 100, costs }, config);
          expect(findAnomaly({ day, running: false, first_day: 100, costs: costs.toReversed() }, config)).toEqual(
            found,
          );
          const scaled = costs.map((one) => ({ ...one, cost_pico_usd: one.cost_pico_usd * BigInt(factor) }));
          const again = findAnomaly({ day, running: false, first_day: 100, costs: scaled }, config);
          expect(again?.z ?? 0).toBeCloseTo(found?.z ?? 0, 9);
        },
      ),
    );
  });
});
