// The cost pages: groups of the stack, forecasts in words and as charts, and the threshold of anomalies.
import { describe, expect, it } from 'vitest';
import { totalAt } from '../../../api/portal/web/charts/chart_shape.ts';
import { anomalyMarks } from '../../../api/portal/web/screens/costs/anomaly_marks.ts';
import { daysHref, dayTicks, lastDates } from '../../../api/portal/web/screens/costs/cost_days.ts';
import {
  type CostSeries,
  costSummary,
  partsOf,
  rowsOf,
  tracesHref,
} from '../../../api/portal/web/screens/costs/cost_groups.ts';
import { costContent, useContent } from '../../../api/portal/web/screens/costs/forecast_content.ts';
import {
  costWords,
  fitWords,
  limitWords,
  type ResourceForecast,
} from '../../../api/portal/web/screens/costs/forecast_words.ts';
import { readThreshold } from '../../../api/portal/web/screens/costs/threshold.ts';
import { money } from '../../../api/portal/web/text/format.ts';

const NBSP = '\u00a0';
const dates = ['2026-11-21', '2026-11-22', '2026-11-23'];
const sums = (cost_usd: number, days: number[], previous_cost_usd = 0): CostSeries['total'] => ({
  cost_usd,
  tokens: cost_usd * 10,
  previous_cost_usd,
  previous_tokens: 0,
  by_day: { cost_usd: days, tokens: days.map((usd) => usd * 10) },
});
/** Ten models of which the first costs most, calls without a model, and further models. */
const series: CostSeries = {
  period_start: '2026-11-21T00:00:00.000Z',
  period_end: '2026-11-24T00:00:00.000Z',
  group_by: ['model'],
  dates,
  groups: [
    ...Array.from({ length: 10 }, (_, at) => ({ group: { model: `m${at}` }, ...sums(30 - at, [10, 10, 10 - at]) })),
    { group: { model: null }, ...sums(3, [1, 1, 1]) },
  ],
  other: sums(6, [1, 2, 3]),
  total: sums(264, [102, 103, 59]),
};

describe('the groups of costs', () => {
  const rows = rowsOf(series, 'model');
  const parts = partsOf(rows, ['series-1', 'series-2']);

  it('are the rows of the table, with costs without a value and all others at its end', () => {
    expect(rows.map(({ label }) => label)).toEqual([
      ...Array.from({ length: 10 }, (_, at) => `m${at}`),
      'No model',
      'All other',
    ]);
  });

  it('are eight parts of the stack, and one for all other groups', () => {
    expect(parts.map(({ label }) => label)).toEqual([...Array.from({ length: 8 }, (_, at) => `m${at}`), 'All other']);
    expect(parts.at(-1)?.values).toEqual([22, 23, 7]);
    expect(parts.map(({ colour }) => colour).slice(0, 3)).toEqual(['series-1', 'series-2', 'series-other']);
  });

  it('add up to the costs of each day', () => {
    const all = rows.reduce((sum, { days }) => sum + (days[0] ?? 0), 0);
    expect(totalAt(parts, 0)).toBe(all);
  });

  it('lead to the traces of a group and a day; costs without a value to those of the day', () => {
    const href = tracesHref('/o/x/traces', 'model', rows[1] ?? null, '2026-11-22', '2026-11-22');
    expect(Object.fromEntries(new URL(href, 'http://x').searchParams)).toEqual({
      since: '2026-11-22T00:00:00.000Z',
      until: '2026-11-22T23:59:59.999Z',
      sort: 'cost_usd',
      model: 'm1',
    });
    expect(tracesHref('/t', 'model', rows[10] ?? null, dates[0] ?? '', dates[2] ?? '')).not.toContain('model');
  });

  it('are summed in words with the day that cost most', () => {
    expect(costSummary(series, money)).toBe('$264.00 in 3 days, at most $103.00 on 2026-11-22.');
    expect(costSummary({ ...series, total: sums(0, [0, 0, 0]) }, money)).toBe('$0 in 3 days.');
  });
});

describe('days of costs', () => {
  it('end today in UTC and are labelled by day and month', () => {
    const days = lastDates(3, Date.parse('2026-03-01T00:30:00Z'));
    expect(days).toEqual(['2026-02-27', '2026-02-28', '2026-03-01']);
    expect(dayTicks(days)).toEqual(['27 Feb', '28 Feb', '1 Mar']);
  });

  it('keep further filters in the address of their traces', () => {
    expect(daysHref('/t', '2026-02-28', '2026-03-01', { agent_id: 'a b' })).toBe(
      '/t?since=2026-02-28T00%3A00%3A00.000Z&until=2026-03-01T23%3A59%3A59.999Z&sort=cost_usd&agent_id=a+b',
    );
  });

  it('are marked where an anomaly was found', () => {
    const anomaly = {
      anomaly_id: 'anom_1',
      date: '2026-11-22',
      detected_at: '2026-11-22T04:00:00Z',
      kind: 'z_score' as const,
      z: 5,
      expected_usd: 2,
      actual_usd: 50,
      attributed_to: { model: null, agent_id: null },
    };
    expect(anomalyMarks([anomaly, { ...anomaly, date: '2025-01-01' }], dates)).toEqual([
      { at: 1, kind: 'Anomaly', label: '$50.00 instead of $2.00', colour: 'error' },
    ]);
    expect(anomalyMarks([{ ...anomaly, z: -4 }], dates)[0]?.colour).toBe('warn');
  });
});

describe('how a forecast was made, in words', () => {
  it.each([
    [0, true, null, 'The forecast begins after the first whole day of data. There is none yet.'],
    [
      1,
      true,
      null,
      'The forecast is the mean of the 1 whole day of data that there are. A trend needs at least 14 days.',
    ],
    [
      13,
      true,
      null,
      'The forecast is the mean of the 13 whole days of data that there are. A trend needs at least 14 days.',
    ],
    [20, true, null, 'The forecast is the mean of 20 whole days of data, because they do not vary.'],
    [
      90,
      false,
      0.853,
      `The forecast is a line through 90 whole days of data, which explains 85${NBSP}% of their variance (r² 0.85).`,
    ],
  ])('of %d days, mean %s', (days_of_data, mean_fallback, r_squared, words) => {
    expect(fitWords({ days_of_data, mean_fallback, r_squared })).toBe(words);
  });
});

const forecast: ResourceForecast = {
  resource: 'tokens',
  used: 600,
  soft_limit: 500,
  hard_limit: 1000,
  by_day: [
    { date: '2026-12-01', used: 400 },
    { date: '2026-12-02', used: 600 },
  ],
  series: [
    { date: '2026-12-02', predicted: 700, lower_ci: 600, upper_ci: 800 },
    { date: '2026-12-03', predicted: 900, lower_ci: 700, upper_ci: 1100 },
    { date: '2026-12-04', predicted: 1100, lower_ci: 800, upper_ci: 1400 },
  ],
  soft_limit_reached: null,
  hard_limit_reached: { expected: '2026-12-14', earliest: '2026-12-09' },
  r_squared: 0.9,
  mean_fallback: false,
  days_of_data: 30,
};

describe('a forecast against limits, in words', () => {
  const words = (change: Partial<ResourceForecast>): string =>
    limitWords({ ...forecast, ...change }, '2026-12-02', '2026-12-31');

  it('names the day on which use reaches a limit, and the day at the upper end', () => {
    expect(words({})).toBe(
      `Tokens: reaches the hard limit of 1k${NBSP}tokens on 14 December (9 December at the upper end).`,
    );
    expect(words({ hard_limit_reached: { expected: '2026-12-14', earliest: '2026-12-14' } })).toBe(
      `Tokens: reaches the hard limit of 1k${NBSP}tokens on 14 December.`,
    );
  });

  it('says so where use stays below a limit, at least as expected', () => {
    expect(words({ hard_limit_reached: { expected: null, earliest: null } })).toBe(
      `Tokens: stays below the hard limit of 1k${NBSP}tokens to the end of the period on 31 December.`,
    );
    expect(words({ hard_limit_reached: { expected: null, earliest: '2026-12-30' } })).toContain(
      'but reaches it on 30 December at the upper end',
    );
  });

  it('names the day on which use reached a limit before today', () => {
    expect(words({ soft_limit_reached: { expected: '2026-12-01', earliest: '2026-12-01' } })).toContain(
      `; reached the soft limit of 500${NBSP}tokens on 1 December.`,
    );
  });

  it('names the expected use where no limit is set', () => {
    expect(words({ hard_limit_reached: null, hard_limit: null })).toBe(
      `Tokens: 600${NBSP}tokens so far, expected to be 1.1k${NBSP}tokens at the end of the period on 31 December. No limit is set.`,
    );
  });
});

describe('the charts of a forecast', () => {
  it('show use since the start of the period, known up to today and expected from today on', () => {
    const { points, series: lines, bands, limits } = useContent(forecast);
    expect(points).toEqual(['2026-12-01', '2026-12-02', '2026-12-03', '2026-12-04']);
    expect(lines.map(({ values }) => values)).toEqual([
      [400, 600, null, null],
      [null, 700, 900, 1100],
    ]);
    expect(bands?.[0]).toMatchObject({ low: [null, 600, 700, 800], high: [null, 800, 1100, 1400] });
    expect(limits?.map(({ value }) => value)).toEqual([1000, 500]);
  });

  it('show the days that a forecast is computed from, today, and the days ahead', () => {
    const ahead = {
      horizon_days: 2,
      series: [
        { date: '2026-11-23', predicted_usd: 4, lower_ci: 3, upper_ci: 5 },
        { date: '2026-11-24', predicted_usd: 6, lower_ci: 4, upper_ci: 8 },
      ],
      model: { type: 'ols' as const, r_squared: null },
      mean_fallback: true,
      days_of_data: 2,
    };
    const { points, series: lines } = costContent({ dates: ['2026-11-20', ...dates], costs: [0, 1, 2, 3] }, ahead);
    expect(points).toEqual([...dates, '2026-11-24']);
    expect(lines.map(({ values }) => values)).toEqual([
      [1, 2, 3, null],
      [null, null, 4, 6],
    ]);
    expect(costWords(ahead)).toBe(
      'The next 2 days, today included, are expected to cost $10.00: $4.00 today, $6.00 on 24 November ($4.00 to $8.00 with 95 % probability).',
    );
  });
});

describe('the threshold as it is typed', () => {
  const saved = { z_threshold: 3, lookback_days: 30 };

  it('keeps what is saved where nothing is typed', () => {
    expect(readThreshold({ z_threshold: '', lookback_days: '' }, saved)).toEqual({
      value: saved,
      changed: false,
      errors: { z_threshold: null, lookback_days: null },
    });
  });

  it('is a change where it differs', () => {
    const read = readThreshold({ z_threshold: '2.5', lookback_days: ' 30 ' }, saved);
    expect(read).toMatchObject({ value: { z_threshold: 2.5, lookback_days: 30 }, changed: true });
    expect(readThreshold({ z_threshold: '3.0', lookback_days: '' }, saved).changed).toBe(false);
  });

  it.each(['0', '-1', 'x', '100', '1e3', '2,5'])('is refused with the accepted numbers for "%s"', (z_threshold) => {
    const { value, errors } = readThreshold({ z_threshold, lookback_days: '' }, saved);
    expect([value, errors.z_threshold]).toEqual([null, 'Must be a number above 0 and at most 99.']);
  });

  it.each(['6', '366', '7.5', 'x'])('is refused with the accepted days for "%s"', (lookback_days) => {
    const { value, errors } = readThreshold({ z_threshold: '', lookback_days }, saved);
    expect([value, errors.lookback_days]).toEqual([null, 'Must be a whole number from 7 to 365.']);
  });
});
