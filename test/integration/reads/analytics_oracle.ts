// What plain SQL on the analysts' views returns for analytics queries, with spans of a month to ask about: two
// thirds of them are in the projections, the rest is read from rows.
import fc from 'fast-check';
import { expect } from 'vitest';
import { queryAnalytics } from '../../../api/telemetry/analytics/analytics.ts';
import { analyticsQuery } from '../../../api/telemetry/analytics/schema.ts';
import type { OrgCredential } from '../../../api/http/credential.ts';
import { OrgSlots } from '../../../api/http/org_slots.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, seeded, type TestStore, tracesOf } from '../../support/store.ts';

const HOUR = 3_600_000;
/** Start of the spans' time. */
export const START = Date.parse('2026-03-20T00:00:00Z');
const HOURS = 30 * 24;
export const NOW = Date.parse('2026-05-01T00:00:00Z');
const signal = new AbortController().signal;
const credential: OrgCredential = {
  kind: 'user',
  org_id: 'org_a',
  user_id: 'u',
  email: null,
  role: 'member',
};

type Cells = (string | number | null)[];
/** Asks the route of analytics. */
export const asking =
  (store: TestStore) =>
  async (body: Record<string, unknown>, org_id = 'org_a') =>
    queryAnalytics(
      { clickhouse: store.client, slots: new OrgSlots(4), now: () => NOW },
      { ...credential, org_id },
      analyticsQuery.parse(body),
      signal,
    );
/** Runs SQL as an analyst would write it. */
export const selecting =
  (store: TestStore) =>
  async (statement: string): Promise<Record<string, unknown>[]> =>
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

/** Returns a store with 1,500 spans of org_a and 300 of org_b over 30 days from START. */
export async function openSpans(): Promise<TestStore> {
  const store = await openTestStore();
  const own = spansOf('org_a', 1500, 1);
  await store.landSpans([...own.slice(0, 1000), ...spansOf('org_b', 300, 2)]);
  // These spans are in the projections; those that land later are not.
  await store.database.run('OPTIMIZE TABLE spans FINAL');
  await store.landSpans(own.slice(1000));
  await store.landTraces(tracesOf(own).map((state) => ({ state, version: 1, sign: 1 as const })));
  return store;
}

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
export const FILTERS: readonly (readonly [Record<string, unknown>, string])[] = [
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
/** Measures and filters that hours answer; the filters come first in the list. */
const MEASURES_OF_HOURS = Object.keys(MEASURES).filter(
  (name) => !/^(cost_usd max|output_tokens|users|traces)/.test(name),
);
const FILTERS_OF_HOURS = 6;
/** Digests of the same rows differ by the order of merging. */
const DIGEST_ERROR = 0.01;

/** Compares two values of an aggregation: exact ones exactly, estimates within the error of digests. */
export function near(found: unknown, expected: unknown, agg: string): void {
  if (found === null || expected === null) {
    expect(found).toEqual(expected);
    return;
  }
  const [a, b] = [Number(found), Number(expected)];
  const tolerance = agg.startsWith('p') ? DIGEST_ERROR : 1e-9;
  if (Math.abs(a - b) > tolerance * Math.max(1, Math.abs(b))) expect([agg, a]).toEqual([agg, b]);
}

export interface Generated {
  measures: string[];
  group_by: string[];
  filters: number[];
  granularity: string | null;
  zone: string;
  since: number;
  until: number;
}

/** Queries of all that the view spans has, over any quarters of an hour. */
export const generated: fc.Arbitrary<Generated> = fc.record({
  measures: fc.uniqueArray(fc.constantFrom(...Object.keys(MEASURES)), { minLength: 1, maxLength: 5 }),
  group_by: fc.uniqueArray(fc.constantFrom(...DIMENSIONS), { maxLength: 2 }),
  filters: fc.uniqueArray(fc.nat({ max: FILTERS.length - 1 }), { maxLength: 3 }),
  granularity: fc.option(fc.constantFrom(...Object.keys(BUCKETS))),
  zone: fc.constantFrom(...ZONES),
  since: fc.nat({ max: 20 * 24 * 4 }),
  until: fc.integer({ min: 1, max: 9 * 24 * 4 }),
});

/** Queries that hours or days answer, over whole hours. */
export const generatedMonths: fc.Arbitrary<Generated> = fc.record({
  measures: fc.uniqueArray(fc.constantFrom(...MEASURES_OF_HOURS), { minLength: 1, maxLength: 5 }),
  group_by: fc.uniqueArray(fc.constantFrom(...DIMENSIONS.slice(0, 5)), { maxLength: 2 }),
  filters: fc.uniqueArray(fc.nat({ max: FILTERS_OF_HOURS - 1 }), { maxLength: 2 }),
  granularity: fc.option(fc.constantFrom('day', 'week', 'month')),
  zone: fc.constantFrom('UTC', 'UTC', ...ZONES),
  since: fc.nat({ max: 9 * 24 }).map((hours) => hours * 4),
  until: fc.integer({ min: 7 * 24, max: 22 * 24 }).map((hours) => hours * 4),
});

const QUARTER = HOUR / 4;

/**
 * Compares what analytics returns with SQL on analyst_spans.
 * @returns the source of the answer, or `truncated` where it was not compared
 */
export async function compare(
  store: TestStore,
  { measures, group_by, filters, granularity, zone, since, until }: Generated,
): Promise<string> {
  const [ask, sql] = [asking(store), selecting(store)];
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
