// Facets and series of the trace list, compared with the traces in memory under generated filters.
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { familiesFolded } from '../../../api/http/query_params.ts';
import { countFacets } from '../../../api/telemetry/traces/facets.ts';
import { type Facet, facetsQuery } from '../../../api/telemetry/traces/facet_schema.ts';
import { traceSeries } from '../../../api/telemetry/traces/series.ts';
import { seriesQuery } from '../../../api/telemetry/traces/series_schema.ts';
import { durationMs } from '../../../pipeline/domain/traces/trace_state.ts';
import { wordsDeps } from '../../support/words.ts';
import '../../support/properties.ts';
import {
  DAY_MS,
  FILTER_VALUES,
  type KnownTrace,
  matches,
  newestVerdicts,
  NOW,
  openTraceSet,
  type TraceSet,
} from './a_trace_set.ts';

const signal = new AbortController().signal;
/** Generated combinations of filters. */
const RUNS = 40;

let set: TraceSet;
beforeAll(async () => {
  set = await openTraceSet();
});
afterAll(() => set.store.close());

type Query = Record<string, string>;
const facets = (query: Query, orgId = 'org_a') =>
  countFacets(
    { ...wordsDeps(set.store.client), now: () => NOW },
    orgId,
    facetsQuery.parse(familiesFolded(facetsQuery, query)),
    signal,
  );
const seriesOf = (query: Query, orgId = 'org_a') =>
  traceSeries(
    { ...wordsDeps(set.store.client), now: () => NOW },
    orgId,
    seriesQuery.parse(familiesFolded(seriesQuery, query)),
    signal,
  );

/** Values of a trace by field; one for a field that holds several. */
const VALUES: Record<string, (trace: KnownTrace) => string[]> = {
  outcome: ({ state }) => [state.outcome],
  agent_id: ({ state }) => [state.agent_id],
  root_span_name: ({ state }) => [state.root_span_name],
  tags: ({ state }) => state.tags,
  session_id: ({ state }) => [state.session_id],
  user_id: ({ state }) => [state.user_id],
  sampled: ({ state }) => [String(state.sampled)],
  model: ({ spans }) => spans.map(({ model }) => model),
  source_format: ({ spans }) => spans.map(({ source_format }) => source_format),
  department: ({ spans }) => spans.map(({ department }) => department),
  realm: ({ spans }) => spans.map(({ realm }) => realm),
  verdict: (trace) => newestVerdicts(trace).map(({ judge_id, verdict }) => `${judge_id} ${verdict}`),
  score: ({ scores }) =>
    scores.map(
      ({ name, data_type, number, text }) =>
        `${name}:eq:${data_type === 'categorical' ? text : data_type === 'boolean' ? String(number === 1) : String(number)}`,
    ),
};
const NUMBERS: Record<string, (trace: KnownTrace) => number> = {
  duration_ms: ({ state }) => durationMs(state),
  cost_usd: ({ state }) => Number(state.cost_pico_usd) / 1e12,
  tokens: ({ state }) => state.input_tokens + state.output_tokens,
};
const OWN: Record<string, RegExp> = {
  duration_ms: /^(min|max)_duration_ms$/,
  cost_usd: /^(min|max)_cost_usd$/,
  tokens: /^(min|max)_tokens$/,
  verdict: /^(not_)?(judge_id|verdict)$/,
};

/** Traces that a field is counted among: those that match all filters but the field's own. */
function among(field: string, query: Query): KnownTrace[] {
  const isOwn = (name: string): boolean => OWN[field]?.test(name) ?? (name === field || name === `not_${field}`);
  const others = Object.fromEntries(Object.entries(query).filter(([name]) => !isOwn(name)));
  return set.known.filter((trace) => matches(trace, others));
}

function expectFacet(facet: Facet, query: Query): void {
  const traces = among(facet.field, query);
  const number = NUMBERS[facet.field];
  if (number !== undefined) {
    const counted = (facet.buckets ?? []).map(({ from, to, traces: count }) => [
      count,
      traces.filter((trace) => number(trace) >= from && (to === null || number(trace) < to)).length,
    ]);
    expect([facet.field, counted.map(([count]) => count)]).toEqual([facet.field, counted.map(([, own]) => own)]);
    expect(counted.reduce((sum, [count = 0]) => sum + count, 0)).toBe(traces.length);
    return;
  }
  const expected = new Map<string, number>();
  for (const trace of traces)
    for (const value of new Set(VALUES[facet.field]?.(trace)))
      if (value !== '') expected.set(value, (expected.get(value) ?? 0) + 1);
  const found = (facet.values ?? []).map(({ judge_id, value, traces: count }): [string, number] => [
    judge_id === undefined ? value : `${judge_id} ${value}`,
    count,
  ]);
  expect([facet.field, Object.fromEntries(found)]).toEqual([facet.field, Object.fromEntries(expected)]);
  expect(found.map(([, count]) => count)).toEqual(found.map(([, count]) => count).toSorted((a, b) => b - a));
  if (facet.other !== undefined)
    expect(found.reduce((sum, [, count]) => sum + count, (facet.without ?? 0) + facet.other)).toBe(traces.length);
  if (facet.field === 'tags') expect(facet.without).toBe(traces.filter(({ state }) => state.tags.length === 0).length);
}

const FILTERS = Object.keys(FILTER_VALUES).filter((name) => name !== 'trace_ids');
const filtersBy = (names: readonly string[]) =>
  fc.record(Object.fromEntries(names.map((name) => [name, fc.constantFrom(...(FILTER_VALUES[name] ?? []))])));
const combination = fc.uniqueArray(fc.constantFrom(...FILTERS), { maxLength: 3 }).chain(filtersBy);

const EVERY_FIELD = [...Object.keys(VALUES), ...Object.keys(NUMBERS)];
/** Which fields share a pass over the traces depends on the fields that are asked for. */
const asked = fc.oneof(fc.constant(EVERY_FIELD), fc.subarray(EVERY_FIELD, { minLength: 1 }));

it('each facet counts the traces under all filters but its own, and adds up to their number, whichever fields are asked for', async () => {
  await fc.assert(
    fc.asyncProperty(combination, asked, async (query, fields) => {
      const { data, meta } = await facets({ ...query, fields: fields.join(',') });
      expect(meta).toEqual({ total: set.known.filter((trace) => matches(trace, query)).length, partial: false });
      expect(data.map(({ field }) => field)).toEqual(fields);
      for (const facet of data) expectFacet(facet, query);
    }),
    { numRuns: RUNS },
  );
});

it.each([
  ['time', { ms: 1, memoryBytesMax: 250_000_000, tracesCountedMax: 1_000_000 }],
  ['memory', { ms: 60_000, memoryBytesMax: 1, tracesCountedMax: 1_000_000 }],
])('facets without enough %s are marked as partial, and so is their total', async (_, bounds) => {
  const query = facetsQuery.parse(familiesFolded(facetsQuery, { model: 'o3', 'attributes.region': 'eu' }));
  const { data, meta } = await countFacets(
    { ...wordsDeps(set.store.client), now: () => NOW },
    'org_a',
    query,
    signal,
    bounds,
  );
  expect(meta).toEqual({ total: null, partial: true });
  for (const { field, partial, values = [], buckets = [] } of data)
    expect([field, partial, values, buckets]).toEqual([field, true, [], []]);
});

it('facets of a caller that has gone are cancelled, and not partial', async () => {
  const gone = AbortSignal.abort(new Error('the caller has gone'));
  await expect(
    countFacets({ ...wordsDeps(set.store.client), now: () => NOW }, 'org_a', facetsQuery.parse({}), gone),
  ).rejects.toThrow();
});

it('facets without fields count all but session_id and user_id', async () => {
  const { data } = await facets({});
  expect(data.map(({ field }) => field).toSorted()).toEqual(
    EVERY_FIELD.filter((name) => !/^(session|user)_id$/.test(name)).toSorted(),
  );
});

it('facets and series show nothing of another organization', async () => {
  const { data, meta } = await facets({}, 'org_nobody');
  expect(meta.total).toBe(0);
  for (const { values = [], buckets = [] } of data) expect([...values, ...buckets]).toEqual([]);
  const { data: series } = await seriesOf({ since: '2025-12-01' }, 'org_nobody');
  expect(series.series.flatMap(({ traces }) => traces).every((count) => count === 0)).toBe(true);
});

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
const withoutTime = FILTERS.filter((name) => name !== 'since' && name !== 'until');

it('the sums of a series equal those of the list, split by any field', async () => {
  const split = fc.constantFrom(undefined, 'outcome', 'agent_id', 'root_span_name');
  const filters = fc.uniqueArray(fc.constantFrom(...withoutTime), { maxLength: 2 }).chain(filtersBy);
  await fc.assert(
    fc.asyncProperty(filters, split, fc.constantFrom('1', '2', '20'), async (given, group_by, top) => {
      const query = { ...given, since: new Date(NOW - 45 * DAY_MS).toISOString() };
      const { data, meta } = await seriesOf({ ...query, top, ...(group_by === undefined ? {} : { group_by }) });
      const traces = set.known.filter((trace) => matches(trace, { ...query, until: new Date(NOW).toISOString() }));
      expect(meta.bucket_seconds).toBe(43_200);
      const all = (key: 'traces' | 'errors' | 'timeouts' | 'input_tokens' | 'output_tokens' | 'cost_usd') =>
        sum(data.series.flatMap((one) => one[key]));
      expect([all('traces'), all('errors'), all('timeouts'), all('input_tokens'), all('output_tokens')]).toEqual([
        traces.length,
        traces.filter(({ state }) => state.outcome === 'error').length,
        traces.filter(({ state }) => state.outcome === 'timeout').length,
        sum(traces.map(({ state }) => state.input_tokens)),
        sum(traces.map(({ state }) => state.output_tokens)),
      ]);
      expect(all('cost_usd')).toBeCloseTo(sum(traces.map(({ state }) => Number(state.cost_pico_usd) / 1e12)), 8);
      expect(data.series.filter(({ other }) => other).length).toBeLessThanOrEqual(1);
      expect(data.series.filter(({ other }) => !other).length).toBeLessThanOrEqual(Number(top));
    }),
    { numRuns: RUNS },
  );
});

it.each([
  ['time', { ms: 1, memoryBytesMax: 400_000_000 }],
  ['memory', { ms: 60_000, memoryBytesMax: 1 }],
])('a series without enough %s is rejected as an error that a retry may resolve', async (_, bounds) => {
  const query = seriesQuery.parse({ group_by: 'model', since: '2026-02-01' });
  const deps = { ...wordsDeps(set.store.client), now: () => NOW };
  const read = traceSeries(deps, 'org_a', query, signal, bounds);
  await expect(read).rejects.toMatchObject({ code: 'upstream_unavailable' });
  await expect(read).rejects.toThrow('too little time or memory');
});

it('each bucket of a series has the traces that started in it, with their percentiles to 1 %', async () => {
  const since = NOW - 10 * DAY_MS;
  const { data, meta } = await seriesOf({ since: new Date(since).toISOString(), buckets: '12' });
  expect(meta).toMatchObject({ bucket_seconds: 86_400 });
  expect(data.buckets.length).toBeLessThanOrEqual(12);
  const [all] = data.series;
  for (const [place, start] of data.buckets.entries()) {
    const from = Math.max(since, Date.parse(start));
    const own = set.known
      .filter(
        ({ state }) =>
          state.started_at >= from && state.started_at < Date.parse(start) + DAY_MS && state.started_at <= NOW,
      )
      .map(({ state }) => durationMs(state))
      .sort((a, b) => a - b);
    expect(all?.traces[place]).toBe(own.length);
    if (own.length === 0) expect(all?.p95_duration_ms[place]).toBeNull();
    else {
      const p95 = all?.p95_duration_ms[place] ?? NaN;
      const near = own.map((ms) => Math.abs(ms - p95) / Math.max(1, ms));
      expect(Math.min(...near)).toBeLessThan(0.02);
      expect(own.filter((ms) => ms <= p95 * 1.02).length / own.length).toBeGreaterThanOrEqual(0.9);
    }
  }
});

it('a series of named values equals the series of each value as a filter, in the order of the names', async () => {
  const since = new Date(NOW - 45 * DAY_MS).toISOString();
  const fields = fc.constantFrom('session_id', 'user_id', 'agent_id', 'root_span_name');
  const valuesOf = (field: string): string[] =>
    [...new Set(set.known.flatMap((trace) => VALUES[field]?.(trace) ?? []))].filter((value) => value !== '');
  const named = fields.chain((field) => {
    const value = fc.constantFrom(...valuesOf(field), String.raw`nobody, "they" \ said`);
    return fc.tuple(fc.constant(field), fc.uniqueArray(value, { minLength: 1, maxLength: 4 }));
  });
  await fc.assert(
    fc.asyncProperty(named, fc.boolean(), async ([field, values], filtered) => {
      const filters: Query = filtered ? { outcome: 'success' } : {};
      const groups = values.map((value) => value.replaceAll(/[,\\]/g, String.raw`\$&`)).join(',');
      const { data } = await seriesOf({ ...filters, since, buckets: '20', group_by: field, groups });
      expect(data.time_to_first_token).toBeNull();
      expect(data.series.map(({ group, other }) => [group, other])).toEqual(values.map((value) => [value, false]));
      for (const one of data.series) {
        const known = set.known.filter(
          (trace) =>
            matches(trace, { ...filters, since, until: new Date(NOW).toISOString() }) &&
            VALUES[field]?.(trace).includes(one.group ?? ''),
        );
        expect(sum(one.traces)).toBe(known.length);
        expect(sum(one.errors)).toBe(known.filter(({ state }) => state.outcome === 'error').length);
      }
    }),
    { numRuns: RUNS },
  );
});

it('a series of named models has the calls of these models alone', async () => {
  const since = new Date(NOW - 45 * DAY_MS).toISOString();
  const query = { since, group_by: 'model', buckets: '20' };
  const all = (await seriesOf({ ...query, top: '20' })).data.series.filter(({ other }) => !other);
  const [named] = all.slice(-1);
  const { data } = await seriesOf({ ...query, groups: named?.group ?? '' });
  expect(data.series).toEqual([named]);
});

it.each([{ 'attributes.region': 'nowhere' }, { search: 'nowhere' }])(
  'a series and facets count nothing under a filter that no trace matches: %o',
  async (filter) => {
    for (const group_by of ['model', 'agent_id', undefined]) {
      const { data } = await seriesOf({
        ...filter,
        since: '2025-12-01',
        ...(group_by === undefined ? {} : { group_by }),
      });
      expect(sum(data.series.flatMap(({ traces, input_tokens }) => [...traces, ...input_tokens]))).toBe(0);
      expect(data.time_to_first_token?.p50_ms.every((time) => time === null)).toBe(true);
    }
    const { data, meta } = await facets({ ...filter, since: '2025-12-01' });
    expect(meta).toEqual({ total: 0, partial: false });
    const counted = data.flatMap(({ values = [], buckets = [] }) =>
      [...values, ...buckets].map(({ traces }) => traces),
    );
    expect(sum(counted)).toBe(0);
  },
);

it('a series by model has the calls of each model', async () => {
  const since = new Date(NOW - 45 * DAY_MS).toISOString();
  const { data, meta } = await seriesOf({ since, group_by: 'model', buckets: '2', top: '2' });
  const calls = set.known
    .flatMap(({ spans }) => spans)
    .filter(({ model, started_at }) => model !== '' && started_at >= Date.parse(since) && started_at <= NOW);
  expect(sum(data.series.flatMap(({ input_tokens }) => input_tokens))).toBe(
    sum(calls.map((call) => call.input_tokens)),
  );
  for (const { group, other, output_tokens, traces } of data.series) {
    const own = calls.filter(({ model }) =>
      other ? !data.series.some((one) => one.group === model) : model === group,
    );
    expect(sum(output_tokens)).toBe(sum(own.map((call) => call.output_tokens)));
    const bucketOf = (at: number): number => Math.floor(at / 1000 / meta.bucket_seconds);
    expect(sum(traces)).toBe(
      new Set(own.map(({ trace_id, started_at }) => `${trace_id} ${bucketOf(started_at)}`)).size,
    );
  }
  expect(meta.approximate).toContain('traces');
});

it.each<[Query, string]>([
  [{ since: '2024-01-01' }, 'since: must be at most 400 days before until'],
  [{ groups: 'run-1' }, 'groups: needs group_by'],
  [
    { group_by: 'user_id', groups: Array.from({ length: 50 }, (_, at) => `u${at}`).join(','), buckets: '161' },
    'buckets: must be at most 160 with 50 groups',
  ],
  [{ since: '2026-02-02', until: '2026-02-01' }, 'since: must not be after until'],
])('a period that cannot be served is rejected with the reason: %o', async (query, detail) => {
  await expect(seriesOf(query)).rejects.toThrow(detail);
});

it.each(['2', '7', '100', '400'])('a series has at most %s buckets, whatever the period', async (buckets) => {
  for (const days of [0, 0.001, 1, 30.5, 400]) {
    const { data } = await seriesOf({
      buckets,
      since: new Date(NOW - days * DAY_MS).toISOString(),
      agent_id: 'nobody',
    });
    expect(data.buckets.length).toBeLessThanOrEqual(Number(buckets));
  }
});
