// Analytics returns what plain SQL on the analysts' views returns, from hours and from rows.
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { queryAnalytics } from '../../../api/telemetry/analytics/analytics.ts';
import { analyticsQuery } from '../../../api/telemetry/analytics/schema.ts';
import { OrgSlots } from '../../../api/http/org_slots.ts';
import type { OrgCredential } from '../../../api/http/credential.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, seeded, type TestStore, tracesOf } from '../../support/store.ts';

const HOUR = 3_600_000;
const START = Date.parse('2026-03-20T00:00:00Z');
const HOURS = 30 * 24;
const NOW = Date.parse('2026-05-01T00:00:00Z');
const signal = new AbortController().signal;
const credential: OrgCredential = {
  kind: 'user',
  org_id: 'org_a',
  user_id: 'u',
  email: null,
  role: 'member',
};
let store: TestStore;

type Cells = (string | number | null)[];
const ask = async (body: Record<string, unknown>, org_id = 'org_a') =>
  queryAnalytics(
    { clickhouse: store.client, slots: new OrgSlots(4), now: () => NOW },
    { ...credential, org_id },
    analyticsQuery.parse(body),
    signal,
  );
const sql = async (statement: string): Promise<Record<string, unknown>[]> =>
  store.client.rows({ name: 'oracle', sql: statement, timeoutMs: 20_000 });

const spansOf = (org_id: string, count: number, seed: number) => {
  const random = seeded(seed);
  const one = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
  return Array.from({ length: count }, (_, index) => {
    const started_at = START + Math.floor(random() * HOURS * HOUR);
    return aSpan({
      org_id,
      trace_id: `trc_${org_id}_${index % 200}`,
      started_at,
      ended_at: started_at + 1 + Math.floor(random() * 9000),
      received_at: started_at + 10_000,
      kind: one(['llm', 'llm', 'tool']),
      model: one(['gpt-4o', 'o3', 'claude', 'other', '']),
      agent_id: one(['planner', 'writer', "o'brien", '']),
      outcome: one(['success', 'success', 'success', 'error', 'timeout']),
      environment: one(['production', 'staging', '']),
      provider: one(['openai', 'anthropic']),
      user_id: one(['ann', 'bob', '']),
      tags: one([[], ['a'], ['a', 'b']]),
      input_tokens: Math.floor(random() * 5000),
      output_tokens: Math.floor(random() * 900),
      first_token_ms: random() < 0.5 ? 0 : 1 + Math.floor(random() * 800),
      cost_pico_usd: BigInt(Math.floor(random() * 1e10)),
      attributes: random() < 0.5 ? {} : { region: one(['eu', 'us']), nested: { level: Math.floor(random() * 5) } },
      prompt: '',
      response: '',
    });
  });
};

beforeAll(async () => {
  store = await openTestStore();
  const own = spansOf('org_a', 1500, 1);
  await store.landSpans([...own.slice(0, 1000), ...spansOf('org_b', 300, 2)]);
  // These spans are in the projection; those that land later are not.
  await store.database.run('OPTIMIZE TABLE spans FINAL');
  await store.landSpans(own.slice(1000));
  await store.landTraces(tracesOf(own).map((state) => ({ state, version: 1, sign: 1 as const })));
});
afterAll(() => store.close());

/** Measures as an analyst would write them. */
const MEASURES: Readonly<Record<string, string>> = {
  'count sum': 'count()',
  'errors sum': "countIf(outcome IN ('error', 'timeout'))",
  'error_rate avg': "avg(outcome IN ('error', 'timeout'))",
  'cost_usd sum': 'sum(cost_usd)',
  'cost_usd avg': 'avg(cost_usd)',
  'cost_usd max': 'maxOrNull(cost_usd)',
  'input_tokens sum': 'sum(input_tokens)',
  'output_tokens min': 'minOrNull(output_tokens)',
  'total_tokens sum': 'sum(input_tokens + output_tokens)',
  'total_tokens avg': 'avg(input_tokens + output_tokens)',
  'duration_ms avg': 'avg(duration_ms)',
  'duration_ms min': 'minOrNull(duration_ms)',
  'duration_ms max': 'maxOrNull(duration_ms)',
  'duration_ms p50': 'quantileTDigest(0.5)(duration_ms)',
  'duration_ms p95': 'quantileTDigest(0.95)(duration_ms)',
  'time_to_first_token_ms avg': 'avgIf(first_token_ms, first_token_ms > 0)',
  'time_to_first_token_ms p90': 'quantileTDigestIf(0.9)(first_token_ms, first_token_ms > 0)',
  'output_tokens_per_second avg':
    "avgIf(output_tokens / ((duration_ms - first_token_ms) / 1000), kind = 'llm' AND output_tokens > 0 AND duration_ms > first_token_ms)",
  'users uniq': "uniqExactIf(user_id, user_id != '')",
  'traces uniq': 'uniqExact(trace_id)',
};
const FILTERS: readonly (readonly [Record<string, unknown>, string])[] = [
  [{ field: 'kind', value: 'llm' }, "kind = 'llm'"],
  [{ field: 'agent_id', op: 'ne', value: "o'brien" }, "agent_id != 'o\\'brien'"],
  [{ field: 'model', op: 'in', value: ['gpt-4o', 'o3'] }, "model IN ('gpt-4o', 'o3')"],
  [{ field: 'environment', op: 'exists', value: true }, "environment != ''"],
  [{ field: 'environment', op: 'exists', value: false }, "environment = ''"],
  [{ field: 'outcome', op: 'not_in', value: ['success'] }, "outcome != 'success'"],
  [{ field: 'duration_ms', op: 'gte', value: 4000 }, 'duration_ms >= 4000'],
  [{ field: 'cost_usd', op: 'lt', value: 0.004 }, 'cost_usd < 0.004'],
  [{ field: 'tag', op: 'in', value: ['b', 'c'] }, "hasAny(tags, ['b', 'c'])"],
  [{ field: 'attributes.region', value: 'eu' }, "JSONExtractString(attributes, 'region') = 'eu'"],
  [{ field: 'attributes.nested.level', op: 'gt', value: 2 }, "JSONExtractInt(attributes, 'nested', 'level') > 2"],
];
const DIMENSIONS = ['kind', 'model', 'agent_id', 'outcome', 'environment', 'provider', 'user_id'];
const BUCKETS: Readonly<Record<string, (zone: string) => string>> = {
  hour: (zone) => `toString(toUnixTimestamp(toStartOfHour(started_at, '${zone}')))`,
  day: (zone) => `toString(toUnixTimestamp(toStartOfDay(started_at, '${zone}')))`,
  week: (zone) => `toString(toUnixTimestamp(toDateTime(toMonday(started_at, '${zone}'), '${zone}')))`,
  month: (zone) => `toString(toUnixTimestamp(toDateTime(toStartOfMonth(started_at, '${zone}'), '${zone}')))`,
};
const ZONES = ['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kolkata', 'Asia/Kathmandu', 'Pacific/Auckland'];
/** Digests of the same rows differ by the order of merging. */
const DIGEST_ERROR = 0.01;

function near(found: unknown, expected: unknown, agg: string): void {
  if (found === null || expected === null) {
    expect(found).toEqual(expected);
    return;
  }
  const [a, b] = [Number(found), Number(expected)];
  const tolerance = agg.startsWith('p') ? DIGEST_ERROR : 1e-9;
  if (Math.abs(a - b) > tolerance * Math.max(1, Math.abs(b))) expect([agg, a]).toEqual([agg, b]);
}

interface Generated {
  measures: string[];
  group_by: string[];
  filters: number[];
  granularity: string | null;
  zone: string;
  since: number;
  until: number;
}

const generated: fc.Arbitrary<Generated> = fc.record({
  measures: fc.uniqueArray(fc.constantFrom(...Object.keys(MEASURES)), { minLength: 1, maxLength: 5 }),
  group_by: fc.uniqueArray(fc.constantFrom(...DIMENSIONS), { maxLength: 2 }),
  filters: fc.uniqueArray(fc.nat({ max: FILTERS.length - 1 }), { maxLength: 3 }),
  granularity: fc.option(fc.constantFrom(...Object.keys(BUCKETS))),
  zone: fc.constantFrom(...ZONES),
  since: fc.nat({ max: 20 * 24 * 4 }),
  until: fc.integer({ min: 1, max: 9 * 24 * 4 }),
});

const QUARTER = HOUR / 4;

async function compare({ measures, group_by, filters, granularity, zone, since, until }: Generated): Promise<string> {
  const from = START + since * QUARTER;
  const to = from + until * QUARTER;
  const { data, meta } = await ask({
    view: 'spans',
    measures: measures.map((name) => ({ measure: name.split(' ')[0], agg: name.split(' ')[1] })),
    group_by,
    filters: filters.map((index) => FILTERS[index]?.[0]),
    ...(granularity === null ? {} : { granularity, timezone: zone }),
    since: new Date(from).toISOString(),
    until: new Date(to).toISOString(),
    top: group_by.length === 0 || granularity !== 'hour' ? 30 : 5,
  });
  if (meta.truncated) return 'truncated';
  const bucket = granularity === null ? [] : [`${BUCKETS[granularity]?.(zone) ?? ''} AS t`];
  const where = [
    "org_id = 'org_a'",
    `started_at >= fromUnixTimestamp64Milli(${from}, 'UTC')`,
    `started_at < fromUnixTimestamp64Milli(${to}, 'UTC')`,
    ...filters.map((index) => FILTERS[index]?.[1] ?? ''),
  ].join(' AND ');
  const selected = measures.map((name, index) => `toFloat64(${MEASURES[name] ?? ''}) AS m${index}`).join(', ');
  const keys = [...bucket.map(() => 't'), ...group_by].join(', ');
  const rows = await sql(
    `SELECT ${[...bucket, ...group_by, selected].join(', ')} FROM analyst_spans WHERE ${where} ${keys === '' ? '' : `GROUP BY ${keys}`}`,
  );
  const [totals] = await sql(`SELECT ${selected} FROM analyst_spans WHERE ${where}`);
  const places = group_by.length + bucket.length;
  const keyOf = (cells: Cells): string =>
    JSON.stringify(
      cells.slice(0, places).map((cell, index) => (index < bucket.length ? Date.parse(String(cell)) / 1000 : cell)),
    );
  const expected = new Map(
    rows.map((row) => [
      JSON.stringify([...(granularity === null ? [] : [Number(row['t'])]), ...group_by.map((name) => row[name])]),
      row,
    ]),
  );
  expect(new Set((data.rows as Cells[]).map(keyOf))).toEqual(new Set(expected.keys()));
  for (const cells of data.rows as Cells[])
    for (const [index, name] of measures.entries())
      near(cells[places + index] ?? null, expected.get(keyOf(cells))?.[`m${index}`] ?? null, name.split(' ')[1] ?? '');
  if (totals?.[`m0`] !== null && (data.rows.length > 0 || places === 0))
    for (const [index, name] of measures.entries())
      near(data.totals[index] ?? null, totals?.[`m${index}`] ?? null, name.split(' ')[1] ?? '');
  return meta.source;
}

describe('the view spans', () => {
  it('returns what the same SQL on analyst_spans returns, for generated queries', async () => {
    const sources = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(generated, async (query) => {
        const source = await compare(query);
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
