// Analytics over HTTP: who may ask for what, what is rejected with the nearest query that passes, and
// that one organization's queries are bounded and see its own rows.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { queryAnalytics } from '../../../api/telemetry/analytics/analytics.ts';
import { analyticsQuery } from '../../../api/telemetry/analytics/schema.ts';
import { OrgSlots } from '../../../api/http/org_slots.ts';
import type { OrgCredential } from '../../../api/http/credential.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, type TestStore } from '../../support/store.ts';
import { asKey, makeKey, makeOtherOrg, OTHER_ORG } from './a_cast.ts';
import { type Answer, call, ORG, startTestApi, type TestApi } from './an_api.ts';

const AT = Date.parse('2026-02-03T04:05:06Z');
const COUNT = { view: 'spans', measures: [{ measure: 'count' }], since: '2026-02-01', until: '2026-02-08' };
let nats: TestNats;
let store: TestStore;
let api: TestApi;

beforeAll(async () => {
  nats = await startTestNats();
  store = await openTestStore();
  api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: store.database.url });
  await store.landSpans([
    aSpan({ org_id: ORG, started_at: AT, ended_at: AT + 100 }),
    aSpan({ org_id: OTHER_ORG, started_at: AT, ended_at: AT + 100 }),
    aSpan({ org_id: OTHER_ORG, started_at: AT, ended_at: AT + 100 }),
  ]);
});
afterAll(async () => {
  await api.close();
  await store.close();
  await nats.remove();
});

const ask = (body: unknown, headers: Record<string, string | undefined> = {}): Promise<Answer> =>
  call(api, 'POST', '/v1/analytics/query', { body, headers });
const totals = (answer: Answer): unknown => (answer.json?.['data'] as { totals?: unknown } | undefined)?.totals;

describe('access', () => {
  test('an organization counts its own spans', async () => {
    const other = await makeOtherOrg(api);
    expect(totals(await ask(COUNT))).toEqual([1]);
    expect(totals(await ask(COUNT, other.owner))).toEqual([2]);
  });

  test('costs need costs:read besides traces:read', async () => {
    const traces = asKey((await makeKey(api, ['traces:read'])).raw);
    const both = asKey((await makeKey(api, ['traces:read', 'costs:read'])).raw);
    const queries = [
      { ...COUNT, measures: [{ measure: 'cost_usd' }] },
      { ...COUNT, filters: [{ field: 'cost_usd', op: 'gt', value: 0 }] },
      { ...COUNT, view: 'usage', measures: [{ measure: 'total_tokens' }] },
    ];
    expect((await ask(COUNT, traces)).status).toBe(200);
    for (const query of queries) {
      expect(await ask(query, traces)).toMatchObject({ status: 403, json: { code: 'forbidden' } });
      expect((await ask(query, both)).status).toBe(200);
    }
  });

  test('a fifth query of an organization at a time is rejected with 429', async () => {
    const slots = new OrgSlots(4);
    const held = Array.from({ length: 4 }, () => slots.take(ORG));
    const credential: OrgCredential = { kind: 'user', org_id: ORG, user_id: 'u', email: null, role: 'member' };
    const again = (): Promise<unknown> =>
      queryAnalytics(
        { clickhouse: store.client, slots, now: () => AT },
        credential,
        analyticsQuery.parse(COUNT),
        new AbortController().signal,
      );
    await expect(again()).rejects.toMatchObject({ code: 'rate_limited', headers: { 'Retry-After': '1' } });
    held[0]?.();
    await expect(again()).resolves.toMatchObject({ data: { totals: [1] } });
  });

  test('a query whose caller has gone ends', async () => {
    const credential: OrgCredential = { kind: 'user', org_id: ORG, user_id: 'u', email: null, role: 'member' };
    const deps = { clickhouse: store.client, slots: new OrgSlots(1), now: () => AT };
    const asked = queryAnalytics(deps, credential, analyticsQuery.parse(COUNT), AbortSignal.abort());
    await expect(asked).rejects.toThrow();
    expect(deps.slots.take(ORG)).not.toBeNull();
  });
});

describe('bounds', () => {
  test.each<[Record<string, unknown>, string]>([
    [{ measures: [{ measure: 'joy' }] }, 'measures[0].measure: must be one of count, errors'],
    [{ measures: [{ measure: 'count', agg: 'p95' }] }, 'measures[0].agg: must be one of sum for count'],
    [{ measures: [{ measure: 'count' }, { measure: 'count' }] }, 'measures[1].as: must differ'],
    [{ measures: [] }, 'measures: must have at least one measure'],
    [{ group_by: ['constructor'] }, 'group_by[0]: must be one of kind, name'],
    [{ group_by: ['model', 'model'] }, 'group_by: must name each dimension once'],
    [{ group_by: ['model', 'kind', 'name'] }, 'group_by: must have at most 2 dimensions'],
    [{ filters: [{ field: 'mood', value: 'x' }] }, 'filters[0].field: must be one of kind'],
    [
      { filters: [{ field: 'model', op: 'gt', value: 'x' }] },
      'filters[0].op: must be one of eq, ne, in, not_in, exists for model',
    ],
    [{ filters: [{ field: 'model', value: 7 }] }, 'filters[0].value: must be a text for model'],
    [{ filters: [{ field: 'model', op: 'in', value: 'x' }] }, 'filters[0].value: must be a list with in'],
    [
      { filters: [{ field: 'duration_ms', op: 'gt', value: 'x' }] },
      'filters[0].value: must be a number for duration_ms',
    ],
    [{ filters: [{ field: 'attributes.a..b', value: 'x' }] }, 'filters[0].field: must be attributes. and a path'],
    [{ timezone: 'Mars/Base' }, 'timezone: must be an IANA time zone'],
    [{ since: '2026-02-08' }, 'until: must be after since'],
    [
      { granularity: 'minute' },
      'since: granularity minute covers at most 24 hours. The nearest query that passes has since 2026-02-07T00:00:00.000Z, or granularity hour',
    ],
    [{ granularity: 'hour', since: '2026-01-01' }, 'has since 2026-01-08T00:00:00.000Z, or granularity day'],
    [{ granularity: 'day', since: '2024-01-01' }, 'since: granularity day covers at most 400 days'],
    [{ since: '2001-01-01' }, 'since: a query covers at most 1830 days'],
    [
      { measures: [{ measure: 'users' }], since: '2026-01-01' },
      'since: uniq of users needs rows instead of hours, of which a query reads at most 31 days. The nearest query that passes has since 2026-01-08T00:00:00.000Z',
    ],
    [{ since: '2026-01-01T00:30:00Z' }, 'has since 2026-01-01T00:00:00.000Z and until 2026-02-08T00:00:00.000Z'],
    [{ view: 'traces', since: '2026-01-01' }, 'since: the view traces reads rows'],
    [
      { granularity: 'hour', group_by: ['model'], top: 100 },
      'top: a response has at most 10000 cells, and 168 buckets of 101 groups with 1 measures have 16968. The nearest query that passes has top 58',
    ],
    [
      { view: 'usage', measures: [{ measure: 'cost_usd' }], granularity: 'hour' },
      'granularity: must be day, week or month',
    ],
    [
      { view: 'usage', measures: [{ measure: 'cost_usd' }], timezone: 'Asia/Kolkata' },
      'timezone: must be UTC in the view usage',
    ],
    [
      { view: 'usage', measures: [{ measure: 'cost_usd' }], since: '2026-02-01T13:00:00Z' },
      'has since 2026-02-02T00:00:00.000Z',
    ],
  ])('%j is rejected: %s', async (over, detail) => {
    const answer = await ask({ ...COUNT, ...over });
    expect([answer.status, answer.json?.['code']]).toEqual([422, 'invalid_request']);
    expect(answer.json?.['detail']).toContain(detail);
  });

  test('the nearest query that a rejection names passes', async () => {
    for (const over of [
      { measures: [{ measure: 'users' }], since: '2026-01-08T00:00:00.000Z' },
      { granularity: 'minute', since: '2026-02-07T00:00:00.000Z' },
      { granularity: 'hour', group_by: ['model'], top: 58 },
      { since: '2026-01-01T00:00:00.000Z', until: '2026-02-08T00:00:00.000Z' },
    ])
      expect((await ask({ ...COUNT, ...over })).status).toBe(200);
  });
});

test('every measure, aggregation and dimension of the schema can be asked for', async () => {
  const answer = await call(api, 'GET', '/v1/analytics/schema');
  const { views } = answer.json?.['data'] as {
    views: { name: string; measures: { name: string; aggs: string[] }[]; dimensions: { name: string }[] }[];
  };
  expect(views.map(({ name }) => name)).toEqual(['spans', 'traces', 'scores', 'usage']);
  for (const { name: view, measures, dimensions } of views) {
    const asked = measures.flatMap(({ name, aggs }) => aggs.map((agg) => ({ measure: name, agg })));
    for (let from = 0; from < asked.length; from += 8) {
      const found = await ask({ ...COUNT, view, measures: asked.slice(from, from + 8) });
      expect([found.status, found.text]).toEqual([200, found.text]);
    }
    for (const { name } of dimensions) {
      const found = await ask({ ...COUNT, view, measures: asked.slice(0, 1), group_by: [name], granularity: 'day' });
      expect([name, found.status, found.text]).toEqual([name, 200, found.text]);
    }
  }
});

test('a query without granularity is one row a group, and auto chooses a granularity', async () => {
  const one = await ask({ ...COUNT, group_by: ['model'] });
  expect(one.json?.['data']).toMatchObject({
    columns: [
      { name: 'model', type: 'text', unit: null, role: 'dimension' },
      { name: 'count_sum', type: 'number', unit: 'count', role: 'measure' },
    ],
    rows: [['gpt-4o', 1]],
    totals: [1],
  });
  expect(one.json?.['meta']).toMatchObject({
    granularity: null,
    source: 'rollup',
    approximate: false,
    truncated: false,
  });
  const auto = await ask({ ...COUNT, granularity: 'auto', since: '2026-02-03', until: '2026-02-04' });
  expect(auto.json?.['data']).toMatchObject({ rows: [['2026-02-03T04:00:00.000Z', 1]] });
  expect(auto.json?.['meta']).toMatchObject({ granularity: 'hour' });
});
