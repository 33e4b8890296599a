// Facets of many traces: a part of them is counted and stands for all, and the answer says so.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { countFacets } from '../../../api/telemetry/traces/facets.ts';
import { countPeriods, slicesOf } from '../../../api/telemetry/traces/facet_part.ts';
import { type Facet, type FacetField, facetsQuery } from '../../../api/telemetry/traces/facet_schema.ts';
import { type ClickHouse, createClickHouse } from '../../../sql/client/client.ts';
import { readTemplate, renderTemplate } from '../../../sql/client/template.ts';
import { runStatement } from '../../support/clickhouse.ts';
import { createShardDatabase, startShardEngines } from '../../support/shard_engines.ts';
import { openTestStore, type TestStore } from '../../support/store.ts';
import { wordsDeps } from '../../support/words.ts';

const TRACES = 400_000;
/** A quarter of the traces is counted, in slices of two granules of the table. */
const COUNTED = 100_000;
/** Each granule holds all values in nearly their shares, as traces of one time do. */
const TOLERANCE = 0.1;
const BOUNDS = { ms: 60_000, memoryBytesMax: 250_000_000, tracesCountedMax: COUNTED };
const NOW = Date.parse('2026-03-01T00:00:00Z');
const signal = new AbortController().signal;

/** Returns the statement that lands traces, all in one part of a month. */
const landed = (from: number, count: number, org = 'org_a'): string =>
  `INSERT INTO traces (org_id, anchor, trace_key, trace_id, started_at, ended_at, agent_id, outcome, tags, root_span_name, spans, described, models, sign, version)
   SELECT '${org}', started, sipHash64(id), id, started, started + INTERVAL 1 + number % 7 SECOND, concat('agent_', toString(number % 8)), if(number % 10 = 0, 'error', 'success'),
     if(number % 3 = 0, ['batch'], []), 'run', 1, true, [if(number % 5 = 0, 'o3', 'gpt-5')], 1, 1
   FROM (SELECT number, concat('trace-', toString(number)) AS id, toDateTime64('2026-02-01 00:00:00', 3, 'UTC') + INTERVAL number * 10 SECOND AS started FROM numbers(${from}, ${count}))`;

let store: TestStore;
beforeAll(async () => {
  store = await openTestStore();
  await store.database.run(landed(0, TRACES));
});
afterAll(() => store.close());

const FIELDS: FacetField[] = ['agent_id', 'outcome', 'tags', 'model', 'duration_ms', 'verdict'];
async function facetsOf(
  query: Record<string, string>,
  { client = store.client, org = 'org_a' }: { client?: ClickHouse; org?: string } = {},
): Promise<{ facets: Map<FacetField, Facet>; total: number | null }> {
  const parsed = facetsQuery.parse({ ...query, fields: FIELDS.join(',') });
  const { data, meta } = await countFacets({ ...wordsDeps(client), now: () => NOW }, org, parsed, signal, BOUNDS);
  return { facets: new Map(data.map((facet) => [facet.field, facet])), total: meta.total };
}
const countOf = (facet: Facet | undefined, value: string): number =>
  facet?.values?.find((found) => found.value === value)?.traces ?? 0;
const isNear = (found: number | undefined, exact: number): boolean =>
  Math.abs((found ?? 0) - exact) <= exact * TOLERANCE;

it('estimates the values of many traces from a part of them, and says so', async () => {
  const { facets, total } = await facetsOf({});
  expect(total).toBe(TRACES);
  expect(FIELDS.map((field) => facets.get(field)?.approximate)).toEqual([true, true, true, true, true, false]);
  for (const [field, value, exact] of [
    ['agent_id', 'agent_3', TRACES / 8],
    ['outcome', 'error', TRACES / 10],
    ['tags', 'batch', TRACES / 3],
    ['model', 'o3', TRACES / 5],
  ] as const)
    expect(countOf(facets.get(field), value), field).toSatisfy((found: number) => isNear(found, exact));
  expect(facets.get('tags')?.without).toSatisfy((found: number) => isNear(found, (TRACES * 2) / 3));
  const ranges = facets.get('duration_ms')?.buckets ?? [];
  expect(ranges.map(({ from }) => from)).toEqual([1000, 2000, 5000]);
  expect(ranges.reduce((sum, { traces }) => sum + traces, 0)).toSatisfy((found: number) => isNear(found, TRACES));
});

it('reads the granules of its slices, and not those between them', async () => {
  const filters = { org_id: 'org_a', scores: [], not_scores: [], attributes: [] };
  const periods = await countPeriods(store.client, filters, NOW, { signal });
  const { sql, params } = renderTemplate(readTemplate('traces/total.sql'), {
    ...filters,
    slices: slicesOf(periods, 4),
  });
  const plan = await store.client.rows<{ rows: string }>({
    name: 'test',
    sql: `EXPLAIN ESTIMATE ${sql}`,
    params,
    timeoutMs: 10_000,
  });
  expect(plan.reduce((sum, { rows }) => sum + Number(rows), 0)).toBeLessThan(TRACES * 0.7);
});

it('counts all traces where few match the filters', async () => {
  const { facets, total } = await facetsOf({ agent_id: 'agent_3', outcome: 'error' });
  expect(total).toBe(0);
  const { facets: exact, total: all } = await facetsOf({ agent_id: 'agent_4' });
  expect(all).toBe(TRACES / 8);
  expect([...facets.values(), ...exact.values()].filter(({ approximate }) => approximate)).toEqual([]);
  expect(countOf(exact.get('outcome'), 'error')).toBe(TRACES / 40);
  expect(countOf(exact.get('agent_id'), 'agent_3')).toBe(TRACES / 8);
});

it('counts as many of the traces in small parts', async () => {
  const parts = 50;
  const client = store.client;
  await store.database.run('SYSTEM STOP MERGES traces');
  for (let part = 0; part < parts; part += 1)
    await store.database.run(landed((part * TRACES) / parts, TRACES / parts, 'org_parts'));
  const { facets, total } = await facetsOf({}, { client, org: 'org_parts' });
  expect([total, facets.get('outcome')?.approximate]).toEqual([TRACES, true]);
  expect(countOf(facets.get('outcome'), 'success')).toSatisfy((found: number) => isNear(found, TRACES * 0.9));
  await store.database.run('SYSTEM START MERGES traces');
});

it('counts a part of the traces of each shard', async () => {
  const shards = await startShardEngines(2);
  const database = await createShardDatabase(shards);
  const client = createClickHouse({ url: database.allUrls[0] ?? '' });
  try {
    for (const [shard, url] of database.urls.entries())
      await runStatement(url, landed((shard * TRACES) / 2, TRACES / 2));
    const { facets, total } = await facetsOf({}, { client });
    expect([total, facets.get('outcome')?.approximate]).toEqual([TRACES, true]);
    expect(countOf(facets.get('outcome'), 'success')).toSatisfy((found: number) => isNear(found, TRACES * 0.9));
    expect(countOf(facets.get('model'), 'o3')).toSatisfy((found: number) => isNear(found, TRACES / 5));
  } finally {
    await client.close();
    await shards.remove();
  }
});
