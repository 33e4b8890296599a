// Analytics returns what plain SQL on the analysts' views returns, from days, from hours and from rows.
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TestStore } from '../../support/store.ts';
import { asking, compare, generated, openSpans, selecting } from './analytics_oracle.ts';

let store: TestStore;
let ask: ReturnType<typeof asking>;
let sql: ReturnType<typeof selecting>;

beforeAll(async () => {
  store = await openSpans();
  [ask, sql] = [asking(store), selecting(store)];
});
afterAll(() => store.close());

describe('the view spans', () => {
  it('returns what the same SQL on analyst_spans returns, for generated queries', async () => {
    const sources = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(generated, async (query) => {
        const source = await compare(store, query);
        sources.set(source, (sources.get(source) ?? 0) + 1);
      }),
      { numRuns: 120, seed: 7 },
    );
    expect([...sources.keys()].toSorted()).toEqual(expect.arrayContaining(['rollup', 'rows']));
  });

  it('answers from hours what rows answer', async () => {
    const body = {
      view: 'spans',
      measures: [{ measure: 'count' }, { measure: 'cost_usd' }, { measure: 'duration_ms', agg: 'max' }],
      group_by: ['model'],
      granularity: 'day',
      timezone: 'Europe/Berlin',
      since: '2026-03-22T23:00:00Z',
      until: '2026-04-12T22:00:00Z',
    };
    const hours = await ask(body);
    const rows = await ask({ ...body, measures: [...body.measures, { measure: 'traces', agg: 'uniq' }] });
    expect([hours.meta.source, rows.meta.source]).toEqual(['rollup', 'rows']);
    expect(rows.data.rows.map((cells) => cells.slice(0, -1))).toEqual(hours.data.rows);
    expect(rows.meta.approximate).toBe(true);
    expect(hours.meta.approximate).toBe(false);
  });

  it('puts groups beyond top into other, so that sums stay right', async () => {
    const body = { view: 'spans', measures: [{ measure: 'count' }], since: '2026-03-20', until: '2026-04-19' };
    const all = await ask(body);
    const [total] = all.data.totals;
    for (const group_by of [['agent_id'], ['model', 'agent_id'], ['user_id']]) {
      const { data, meta } = await ask({ ...body, group_by, top: 2 });
      expect([meta.truncated, data.rows.length]).toEqual([true, 3]);
      expect(data.rows.at(-1)?.slice(0, -1)).toEqual(group_by.map(() => 'other'));
      expect(data.rows.reduce((sum, cells) => sum + Number(cells.at(-1)), 0)).toBe(total);
      expect(data.totals).toEqual([total]);
    }
  });

  it('counts a span in the group of each of its tags, and once in the totals', async () => {
    const body = { view: 'spans', measures: [{ measure: 'count' }], since: '2026-03-20', until: '2026-04-19' };
    const { data } = await ask({ ...body, group_by: ['tag'] });
    const expected = await sql(
      "SELECT arrayJoin(if(empty(tags), [''], tags)) AS tag, toUInt32(count()) AS n FROM analyst_spans WHERE org_id = 'org_a' GROUP BY tag ORDER BY n DESC",
    );
    expect(data.rows).toEqual(expected.map(({ tag, n }) => [tag, n]));
    expect(data.totals).toEqual([1500]);
  });

  it('fills hours without data with 0 for sums and null for averages', async () => {
    const { data } = await ask({
      view: 'spans',
      measures: [{ measure: 'count' }, { measure: 'duration_ms', agg: 'avg' }],
      granularity: 'hour',
      since: '2026-03-01T00:00:00Z',
      until: '2026-03-01T03:00:00Z',
      fill: 'zero',
    });
    expect(data.rows).toEqual([
      ['2026-03-01T00:00:00.000Z', 0, null],
      ['2026-03-01T01:00:00.000Z', 0, null],
      ['2026-03-01T02:00:00.000Z', 0, null],
    ]);
  });

  it('has a day of 23 hours and one of 25 where daylight-saving time begins and ends', async () => {
    const { data } = await ask({
      view: 'spans',
      measures: [{ measure: 'count' }],
      granularity: 'day',
      timezone: 'Europe/Berlin',
      since: '2026-03-27T23:00:00Z',
      until: '2026-03-30T22:00:00Z',
      fill: 'zero',
    });
    expect(data.rows.map(([time]) => time)).toEqual([
      '2026-03-27T23:00:00.000Z',
      '2026-03-28T23:00:00.000Z',
      '2026-03-29T22:00:00.000Z',
    ]);
  });

  it('compares with the period before, group by group', async () => {
    const body = { view: 'spans', measures: [{ measure: 'count' }, { measure: 'cost_usd' }], group_by: ['kind'] };
    const { data } = await ask({ ...body, since: '2026-04-01', until: '2026-04-08', compare: 'previous_period' });
    const before = await ask({ ...body, since: '2026-03-25', until: '2026-04-01' });
    expect(data.previous).toMatchObject({ since: '2026-03-25T00:00:00.000Z', until: '2026-04-01T00:00:00.000Z' });
    expect(new Set(data.previous?.rows)).toEqual(new Set(before.data.rows));
    expect(data.previous?.totals).toEqual(before.data.totals);
  });

  it('counts no span of another organization', async () => {
    const body = { view: 'spans', measures: [{ measure: 'count' }], since: '2026-03-20', until: '2026-04-19' };
    expect((await ask(body, 'org_b')).data.totals).toEqual([300]);
    expect((await ask(body, 'org_none')).data.totals).toEqual([0]);
  });

  it('returns a histogram whose heights add up to the count', async () => {
    const { data } = await ask({
      view: 'spans',
      measures: [{ measure: 'duration_ms', agg: 'histogram' }],
      since: '2026-03-20',
      until: '2026-04-19',
    });
    const bins = data.rows[0]?.[0] as [number, number, number][];
    expect(Math.round(bins.reduce((sum, [, , height]) => sum + height, 0))).toBe(1500);
    expect(data.columns).toEqual([{ name: 'duration_ms_histogram', type: 'histogram', unit: 'ms', role: 'measure' }]);
  });
});

describe('the other views', () => {
  it('counts traces as the analysts see them', async () => {
    const { data } = await ask({
      view: 'traces',
      measures: [{ measure: 'count' }, { measure: 'cost_usd' }, { measure: 'spans' }],
      group_by: ['outcome'],
      since: '2026-03-20',
      until: '2026-04-19',
    });
    const expected = await sql(
      "SELECT outcome, toFloat64(count()) AS n, toFloat64(sum(cost_usd)) AS cost, toFloat64(sum(spans)) AS s FROM analyst_traces WHERE org_id = 'org_a' GROUP BY outcome ORDER BY n DESC",
    );
    expect(data.rows).toEqual(expected.map(({ outcome, n, cost, s }) => [outcome, n, cost, s]));
  });

  it('adds up use by day, whatever happened to the spans', async () => {
    const { data, meta } = await ask({
      view: 'usage',
      measures: [{ measure: 'total_tokens' }],
      group_by: ['model'],
      granularity: 'week',
      since: '2026-03-01',
      until: '2026-05-01',
    });
    const [expected] = await sql(
      "SELECT toFloat64(sum(input_tokens) + sum(output_tokens)) AS n FROM analyst_usage WHERE org_id = 'org_a'",
    );
    expect(data.totals).toEqual([expected?.['n']]);
    expect(data.rows.reduce((sum, cells) => sum + Number(cells.at(-1)), 0)).toBe(expected?.['n']);
    expect(meta).toMatchObject({ source: 'usage', granularity: 'week', approximate: false });
  });

  it('averages scores of judges and people by name', async () => {
    const at = "toDateTime64('2026-04-02 00:00:00', 3, 'UTC')";
    await store.database.run(
      `INSERT INTO judge_scores (org_id, judge_id, eval_id, trace_id, judge_name, started_at, score, verdict, scored_at)
       SELECT 'org_a', 'judge_1', '', toString(number), 'polite', ${at}, number / 10, 'pass', ${at} FROM numbers(11)`,
    );
    await store.database.run(
      `INSERT INTO user_scores (org_id, name, started_at, trace_id, score_id, data_type, number)
       SELECT 'org_a', 'stars', ${at}, toString(number), toString(number), 'numeric', number FROM numbers(5)`,
    );
    const { data } = await ask({
      view: 'scores',
      measures: [{ measure: 'count' }, { measure: 'score', agg: 'avg' }],
      group_by: ['score_name'],
      since: '2026-04-01',
      until: '2026-04-19',
    });
    expect(data.rows).toEqual([
      ['polite', 11, 0.5],
      ['stars', 5, 2],
    ]);
  });
});
