// The filters and orders of the trace list, compared with a model of the contract over the same
// traces in memory.
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { familiesFolded } from '../../../api/http/query_params.ts';
import { KeySet } from '../../../api/telemetry/spans/postings/key_set.ts';
import { type ListFilters, filtersOf } from '../../../api/telemetry/traces/filters.ts';
import { foundOnce } from '../../../api/telemetry/traces/found_once.ts';
import { listTraces, type TraceList } from '../../../api/telemetry/traces/list.ts';
import { readPage, readTotal } from '../../../api/telemetry/traces/store.ts';
import { keyParts } from '../../../api/telemetry/traces/words.ts';
import { listQuery } from '../../../api/telemetry/traces/schema.ts';
import { durationMs } from '../../../pipeline/domain/traces/trace_state.ts';
import { wordsDeps } from '../../support/words.ts';
import '../../support/properties.ts';
import { DAY_MS, FILTER_VALUES, type KnownTrace, matches, NOW, openTraceSet, type TraceSet } from './a_trace_set.ts';

const signal = new AbortController().signal;
/** Generated combinations of filters. */
const RUNS = 60;

let set: TraceSet;
beforeAll(async () => {
  set = await openTraceSet();
});
afterAll(() => set.store.close());

const list = (query: Record<string, unknown>, orgId = 'org_a'): Promise<TraceList> =>
  listTraces(
    { ...wordsDeps(set.store.client), now: () => NOW },
    orgId,
    listQuery.parse(familiesFolded(listQuery, query)),
    signal,
  );
const ids = ({ data }: TraceList): string[] => data.map((item) => item.trace_id);
const matching = (query: Record<string, string>): string[] =>
  set.known
    .filter((trace) => matches(trace, query))
    .map(({ state }) => state.trace_id)
    .sort();

const oneFilter = Object.entries(FILTER_VALUES).flatMap(([name, values]) =>
  values.map((value): [string, string] => [name, value]),
);

it.each(oneFilter)('the trace list filters by %s=%s, with an exact total', async (name, value) => {
  const { data, meta } = await list({ [name]: value, limit: '200' });
  const expected = matching({ [name]: value });
  expect(data.map(({ trace_id }) => trace_id).sort()).toEqual(expected);
  expect(meta.total).toBe(expected.length);
});

const combination = fc
  .uniqueArray(fc.constantFrom(...Object.keys(FILTER_VALUES)), { minLength: 2, maxLength: 4 })
  .chain((names) =>
    fc.record(Object.fromEntries(names.map((name) => [name, fc.constantFrom(...(FILTER_VALUES[name] ?? []))]))),
  );

it('the trace list applies any combination of filters as the contract words them', async () => {
  await fc.assert(
    fc.asyncProperty(combination, async (query) => {
      const { data, meta } = await list({ ...query, limit: '200' });
      const expected = matching(query);
      expect(data.map(({ trace_id }) => trace_id).sort()).toEqual(expected);
      expect(meta.total).toBe(expected.length);
    }),
    { numRuns: RUNS },
  );
});

it.each([{}, { user_id: 'u1' }, { outcome: 'success', tags: 'x,y' }, { search: 'car' }])(
  'a week of traces with attributes is the same in pages of any size, also with %o',
  async (more) => {
    const query = { 'attributes.region': 'eu', since: new Date(NOW - 7 * DAY_MS).toISOString(), ...more };
    const expected = matching(query);
    expect(expected.length).toBeGreaterThan(0);
    for (const limit of [1, 2, expected.length, 200]) {
      const pages: string[] = [];
      for (let cursor: string | null | undefined = undefined; cursor !== null;) {
        const { data, meta }: TraceList = await list({ ...query, limit: String(limit), ...(cursor && { cursor }) });
        expect(meta.total).toBe(expected.length);
        pages.push(...data.map(({ trace_id }) => trace_id));
        cursor = meta.next_cursor;
      }
      expect(pages.toSorted()).toEqual(expected);
    }
  },
);

it('traces are found once by attributes, unless too many have them', async () => {
  const query = listQuery.parse(familiesFolded(listQuery, { 'attributes.region': 'eu', outcome: 'success' }));
  const filters = filtersOf('org_a', query);
  const count = async (of: ListFilters): Promise<number | undefined> =>
    (await readTotal(set.store.client, of, { signal }))[0]?.total;
  const wanted = matching({ 'attributes.region': 'eu', outcome: 'success' }).length;
  const having = matching({ 'attributes.region': 'eu' }).length;
  const found = await foundOnce(wordsDeps(set.store.client), filters, { signal }, having);
  expect(found).toMatchObject({ attributed: undefined, attributes: [] });
  expect(new Set(found.trace_keys).size).toBe(having);
  expect(await count(found)).toBe(wanted);
  expect(await foundOnce(wordsDeps(set.store.client), filters, { signal }, having - 1)).toEqual(filters);
  expect(await count(filters)).toBe(wanted);
});

it.each(['keys', 'set', 'words'] as const)('traces that have words are counted by their %s', async (way) => {
  const filters = filtersOf('org_a', listQuery.parse({ search: 'car red', outcome: 'success' }));
  const having = matching({ search: 'car red' }).length;
  const [keysMax, setMax] = { keys: [having, 0], set: [having - 1, having], words: [having - 1, having - 1] }[way] as [
    number,
    number,
  ];
  const found = await foundOnce(wordsDeps(set.store.client), filters, { signal }, keysMax, setMax);
  const given = { keys: found.trace_keys, set: found.trace_set, words: found.words };
  expect(Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [name]))).toEqual([way]);
  const [total] = await readTotal(set.store.client, found, { signal });
  expect(total?.total).toBe(matching({ search: 'car red', outcome: 'success' }).length);
});

it('traces are found once by words in the store, unless too many have them', async () => {
  const filters = filtersOf('org_a', listQuery.parse({ search: 'car red', outcome: 'success' }));
  const having = matching({ search: 'car red' }).length;
  const inStore = { clickhouse: set.store.client, findByWords: () => Promise.resolve(null) };
  const [same, found] = await Promise.all(
    [inStore, wordsDeps(set.store.client)].map((deps) => foundOnce(deps, filters, { signal }, having)),
  );
  expect(same?.trace_keys).toHaveLength(having);
  expect(new Set(same?.trace_keys?.map(String))).toEqual(new Set(found?.trace_keys?.map(String)));
  expect(await foundOnce(inStore, filters, { signal }, having - 1)).toEqual(filters);
});

it('a set of more keys than one parameter takes is the same set', async () => {
  const keys = new KeySet();
  for (let n = 0; n < 30_000; n += 1) keys.add(n * 7919, n);
  const { trace_key } = (await readPage(set.store.client, { org_id: 'org_a', rows: 1 }))[0] ?? { trace_key: '0' };
  keys.add(Number(BigInt(trace_key) & 0xffff_ffffn), Number(BigInt(trace_key) >> 32n));
  keys.add(0, 0);
  const trace_set = keyParts(keys);
  expect(trace_set.length).toBeGreaterThan(2);
  const rows = await readPage(set.store.client, { org_id: 'org_a', trace_set, rows: 100 });
  expect(new Set(rows.map((row) => row.trace_key))).toEqual(new Set([trace_key]));
});

it('a filter shows nothing of another organization', async () => {
  const { data } = await list({ model: 'o3,gpt-4o,gpt-4o-mini', limit: '200' }, 'org_b');
  expect(data.length).toBeGreaterThan(0);
  expect(data.every(({ trace_id }) => Number(trace_id.slice('trace-'.length)) % 8 === 0)).toBe(true);
  expect((await list({ trace_ids: 'trace-0,trace-8' })).meta.total).toBe(0);
  expect((await list({ scored: 'true' }, 'org_nobody')).meta.total).toBe(0);
});

const MEASURES: Record<string, (trace: KnownTrace) => number> = {
  duration_ms: ({ state }) => durationMs(state),
  cost_usd: ({ state }) => Number(state.cost_pico_usd),
  tokens: ({ state }) => state.input_tokens + state.output_tokens,
};

it.each(Object.keys(MEASURES))('the trace list sorts by %s, the same by cursor and by offset', async (sort) => {
  const since = NOW - 31 * DAY_MS;
  const query = { sort, since: new Date(since).toISOString(), tags: 'x,y' };
  const measure = MEASURES[sort] as (trace: KnownTrace) => number;
  const own = set.known.filter((trace) => matches(trace, { since: query.since, tags: query.tags }));
  const byId = new Map(own.map((trace) => [trace.state.trace_id, trace]));
  const byCursor: string[] = [];
  let cursor: string | null = null;
  do {
    const page: TraceList = await list({ ...query, limit: '13', ...(cursor === null ? {} : { cursor }) });
    expect(page.meta.total).toBe(own.length);
    byCursor.push(...ids(page));
    cursor = page.meta.next_cursor;
  } while (cursor !== null);
  expect(byCursor.toSorted()).toEqual([...byId.keys()].sort());
  const measures = byCursor.map((id) => measure(byId.get(id) as KnownTrace));
  expect(measures).toEqual(measures.toSorted((a, b) => b - a));
  for (const offset of [7, own.length - 1, own.length + 3])
    expect(ids(await list({ ...query, limit: '10', offset: String(offset) }))).toEqual(
      byCursor.slice(offset, offset + 10),
    );
});

it.each([
  [{ sort: 'cost_usd' }, 'since: must be at most 31 days before until'],
  [{ sort: 'tokens', since: '2026-01-01', until: '2026-02-15' }, 'since: must be at most 31 days before until'],
  [{ sort: 'duration_ms', since: '2026-02-20', search: '"a phrase"' }, 'sort: must be started_at if search has'],
])('an order that cannot be served is rejected with the reason: %o', async (query, detail) => {
  await expect(list(query)).rejects.toThrow(detail);
});

it('a cursor of another order is rejected', async () => {
  const { meta } = await list({ limit: '5' });
  await expect(list({ sort: 'cost_usd', since: '2026-02-20', cursor: meta.next_cursor })).rejects.toThrow(
    'cursor: must be a cursor that this list has returned for the same sort',
  );
});
