// Grants and policies over two API processes and a real ClickHouse: what a grant permits and what
// it does not, when it ends, which values a policy accepts, and who may set it.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, type TestStore, tracesOf } from '../../support/store.ts';
import { eventually } from '../../support/wait.ts';
import { makeOrg } from '../a_tenant.ts';
import { type Answer, asUser, call, startTestApi, type TestApi, tokenOf } from './an_api.ts';

const HOUR_MS = 3_600_000;
let nats: TestNats;
let store: TestStore;
let one: TestApi;
let two: TestApi;
let aheadMs = 0;
let org = '';
/** The viewer. Each test uses a new person, because every person has a rate limit of their own. */
let vic = '';
let serial = 0;

beforeAll(async () => {
  nats = await startTestNats();
  store = await openTestStore();
  const options = { natsUrl: nats.url, clickhouseUrl: store.database.url, now: () => Date.now() + aheadMs };
  one = await startTestApi(options);
  two = await startTestApi(options);
});

afterAll(async () => {
  await one.close();
  await two.close();
  await store.close();
  await nats.remove();
});

const dataOf = (answer: Answer) => answer.json?.['data'] as Record<string, unknown>;
const said = (answer: Answer) => [answer.status, answer.json?.['code']];

async function send(name: string, method: string, path: string, body?: unknown, api: TestApi = one): Promise<Answer> {
  const exp = Math.floor((Date.now() + aheadMs) / 1000) + 3600;
  const headers = asUser(await tokenOf({ sub: name, email: `${name}@example.com`, exp }), org);
  return call(api, method, path, { headers, ...(body === undefined ? {} : { body }) });
}

async function join(name: string, role: string): Promise<void> {
  const invited = await send('ann', 'POST', `/orgs/${org}/members`, { email: `${name}@example.com`, role });
  expect((await send(name, 'POST', `/orgs/${org}/members/accept`, { token: dataOf(invited)['token'] })).status).toBe(
    200,
  );
}

const grants = () => `/orgs/${org}/grants`;
const tree = (trace_id: string) => `/v1/traces/${trace_id}/tree`;
const aGrant = (over: Record<string, unknown> = {}) => ({
  user_id: vic,
  resource: { type: 'trace', id: 'trc_seen' },
  permissions: ['traces:read'],
  expires_at: new Date(Date.now() + HOUR_MS).toISOString(),
  ...over,
});

/** Creates a new organization with an owner, a viewer and two traces. */
beforeEach(async () => {
  aheadMs = 0;
  org = `org.g${++serial}`;
  vic = `vic${serial}`;
  await makeOrg(one, { org_id: org });
  await join(vic, 'viewer');
  const spans = ['trc_seen', 'trc_hidden'].map((trace_id) =>
    aSpan({ org_id: org, trace_id, started_at: Date.now() - 1000, ended_at: Date.now() }),
  );
  await store.landSpans(spans);
  await store.landTraces(tracesOf(spans).map((state) => ({ state, version: 1, sign: 1 as const })));
});

describe('a grant', () => {
  test('a grant opens one trace to a viewer, and no other, until it expires', async () => {
    expect(said(await send(vic, 'GET', tree('trc_seen')))).toEqual([403, 'forbidden']);
    const made = await send('ann', 'POST', grants(), aGrant());
    expect([made.status, dataOf(made)]).toEqual([
      201,
      {
        ...aGrant({ expires_at: expect.any(String) }),
        grant_id: expect.stringMatching(/^grt_/) as string,
        created_at: expect.any(String) as string,
      },
    ]);
    const read = await send(vic, 'GET', tree('trc_seen'));
    expect([read.status, dataOf(read)['trace_id']]).toEqual([200, 'trc_seen']);
    expect((await send(vic, 'GET', '/v1/traces/trc_seen/timeline')).status).toBe(200);
    expect(said(await send(vic, 'GET', tree('trc_hidden')))).toEqual([403, 'forbidden']);
    expect(said(await send(vic, 'GET', '/v1/traces'))).toEqual([403, 'forbidden']);
    expect(said(await send(vic, 'POST', '/v1/traces/trc_seen/export', {}))).toEqual([403, 'forbidden']);
    await eventually(async () => (await send(vic, 'GET', tree('trc_seen'), undefined, two)).status === 200, {
      what: 'the grant elsewhere',
    });
    aheadMs = HOUR_MS + 1000;
    for (const api of [one, two])
      expect(said(await send(vic, 'GET', tree('trc_seen'), undefined, api))).toEqual([403, 'forbidden']);
    expect((await send('ann', 'GET', grants())).json?.['data']).toEqual([]);
    const renewed = await send(
      'ann',
      'POST',
      grants(),
      aGrant({ expires_at: new Date(Date.now() + aheadMs + HOUR_MS).toISOString() }),
    );
    expect(renewed.status).toBe(201);
    const kept = [];
    for await (const key of await (await one.log.bucket('grants')).keys(`${org.replaceAll('.', '=2E')}.*`))
      kept.push(key);
    expect(kept).toEqual([expect.stringContaining(String(dataOf(renewed)['grant_id']))]);
  });

  test('a grant may last for any time', async () => {
    const expires_at = '2199-01-01T00:00:00.000Z';
    expect(dataOf(await send('ann', 'POST', grants(), aGrant({ expires_at })))).toMatchObject({ expires_at });
    aheadMs = 10 * 366 * 24 * HOUR_MS;
    expect((await send('ann', 'GET', grants())).json).toMatchObject({ data: [{ expires_at }], meta: { total: 1 } });
    expect((await send(vic, 'GET', tree('trc_seen'))).status).not.toBe(403);
  });

  test('a grant of traces:export opens the file, and nothing of another member', async () => {
    await join('wil', 'viewer');
    await send('ann', 'POST', grants(), aGrant({ permissions: ['traces:export'] }));
    const file = await send(vic, 'POST', '/v1/traces/trc_seen/export', { format: 'json' });
    expect([file.status, file.json?.['trace_id']]).toEqual([200, 'trc_seen']);
    expect(said(await send(vic, 'GET', tree('trc_seen')))).toEqual([403, 'forbidden']);
    expect(said(await send('wil', 'POST', '/v1/traces/trc_seen/export', {}))).toEqual([403, 'forbidden']);
  });

  test("a grant of one judge permits to start and read its evals, and no other judge's", async () => {
    const judge = { name: 'ok', kind: 'deterministic', rule: { type: 'json_valid' }, threshold: { pass: 1 } };
    const ids: unknown[] = [];
    for (let i = 0; i < 2; i++) ids.push(dataOf(await send('ann', 'POST', '/v1/judges', judge))['judge_id']);
    const [granted, other] = ids;
    const begin = (judge_id: unknown, as = vic) =>
      send(as, 'POST', '/v1/evals', { judge_id, trace_ids: ['trc_seen'], async: true });
    expect(said(await begin(granted))).toEqual([403, 'forbidden']);
    const permissions = ['judges:read', 'judges:run'];
    expect(
      (await send('ann', 'POST', grants(), aGrant({ resource: { type: 'judge', id: granted }, permissions }))).status,
    ).toBe(201);
    const begun = await begin(granted);
    expect([begun.status, dataOf(begun)['judge_id']]).toEqual([200, granted]);
    const path = `/v1/evals/${String(dataOf(begun)['eval_id'])}`;
    expect((await send(vic, 'GET', path)).status).toBe(200);
    expect((await send(vic, 'GET', `${path}/scores`)).status).toBe(200);
    expect(said(await begin(other))).toEqual([403, 'forbidden']);
    expect(said(await send(vic, 'POST', '/v1/evals', {}))).toEqual([403, 'forbidden']);
    const theirs = `/v1/evals/${String(dataOf(await begin(other, 'ann'))['eval_id'])}`;
    for (const hidden of [theirs, `${theirs}/scores`, '/v1/evals/eval_none', '/v1/evals'])
      expect(said(await send(vic, 'GET', hidden))).toEqual([403, 'forbidden']);
  });

  test('a grant of one trace opens its scores', async () => {
    await send('ann', 'POST', grants(), aGrant());
    expect((await send(vic, 'GET', '/v1/scores?trace_id=trc_seen')).status).toBe(200);
    expect(said(await send(vic, 'GET', '/v1/scores?trace_id=trc_hidden'))).toEqual([403, 'forbidden']);
    expect(said(await send(vic, 'GET', '/v1/scores?trace_id=trc_seen&trace_id=trc_hidden'))).toEqual([
      403,
      'forbidden',
    ]);
  });

  test('a revoked grant stops working in every process', async () => {
    const { grant_id } = dataOf(await send('ann', 'POST', grants(), aGrant()));
    await eventually(async () => (await send(vic, 'GET', tree('trc_seen'), undefined, two)).status === 200);
    expect((await send('ann', 'GET', grants())).json).toMatchObject({ data: [{ grant_id }], meta: { total: 1 } });
    const deleted = await send('ann', 'DELETE', `${grants()}/${String(grant_id)}`);
    expect([deleted.status, dataOf(deleted)]).toEqual([200, { grant_id, deleted: true }]);
    expect((await send(vic, 'GET', tree('trc_seen'))).status).toBe(403);
    await eventually(async () => (await send(vic, 'GET', tree('trc_seen'), undefined, two)).status === 403, {
      what: 'the refusal elsewhere',
    });
    expect(said(await send('ann', 'DELETE', `${grants()}/${String(grant_id)}`))).toEqual([404, 'not_found']);
  });

  test('a grant ends with the membership, and does not return with it', async () => {
    await send('ann', 'POST', grants(), aGrant());
    await send('ann', 'DELETE', `/orgs/${org}/members/${vic}`);
    await join(vic, 'viewer');
    expect(said(await send(vic, 'GET', tree('trc_seen')))).toEqual([403, 'forbidden']);
    expect((await send('ann', 'GET', grants())).json?.['data']).toEqual([]);
  });

  test('a grant of one organization has no effect in another', async () => {
    await send('ann', 'POST', grants(), aGrant());
    org = await makeOrg(one);
    await join(vic, 'viewer');
    expect(said(await send(vic, 'GET', tree('trc_seen')))).toEqual([403, 'forbidden']);
    expect(said(await send('ann', 'POST', grants(), aGrant()))).toEqual([403, 'cross_org_access']);
  });

  test.each([
    ['an unknown trace', { resource: { type: 'trace', id: 'trc_none' } }, [404, 'trace_not_found'], /./],
    [
      'an unknown agent',
      { resource: { type: 'agent', id: 'a' }, permissions: ['agents:write'] },
      [404, 'agent_not_found'],
      /./,
    ],
    [
      'an unknown judge',
      { resource: { type: 'judge', id: 'j' }, permissions: ['judges:run'] },
      [404, 'judge_not_found'],
      /./,
    ],
    [
      'an unknown dataset',
      { resource: { type: 'dataset', id: 'd' }, permissions: ['datasets:read'] },
      [404, 'dataset_not_found'],
      /./,
    ],
    ['an unknown type', { resource: { type: 'org', id: 'o' } }, [422, 'invalid_request'], /^resource\.type: /],
    ['a stranger', { user_id: 'eve' }, [404, 'member_not_found'], /user_id/],
    [
      'a permission of another type',
      { permissions: ['traces:read', 'agents:read'] },
      [422, 'invalid_request'],
      /^permissions\[1\]: /,
    ],
    ['an unknown permission', { permissions: ['settings:edit'] }, [422, 'invalid_request'], /^permissions\[0\]: /],
    ['no permission', { permissions: [] }, [422, 'invalid_request'], /^permissions: /],
    ['a time that is over', { expires_at: '2020-01-01T00:00:00Z' }, [422, 'invalid_request'], /^expires_at: /],
    [
      'a time after the year 9999',
      { expires_at: '9999-12-31T23:59:59-01:00' },
      [422, 'invalid_request'],
      /^expires_at: /,
    ],
    ['no time', { expires_at: undefined }, [422, 'invalid_request'], /^expires_at: /],
    ['what is no time', { expires_at: 'tomorrow' }, [422, 'invalid_request'], /^expires_at: /],
  ])('a grant for %s is rejected', async (_what, over, expected, detail) => {
    const answer = await send('ann', 'POST', grants(), aGrant(over));
    expect([...said(answer), answer.json?.['detail']]).toEqual([...expected, expect.stringMatching(detail) as string]);
  });

  test('only owners create, see and revoke grants', async () => {
    await join('adi', 'admin');
    for (const [method, path, body] of [
      ['POST', grants(), aGrant()],
      ['GET', grants(), undefined],
      ['DELETE', `${grants()}/grt_1`, undefined],
    ] as const)
      expect([method, ...said(await send('adi', method, path, body))]).toEqual([method, 403, 'forbidden']);
    const byKey = await call(one, 'POST', '/orgs/org_test/grants', { body: aGrant() });
    expect(said(byKey)).toEqual([403, 'forbidden']);
  });
});

describe('a policy', () => {
  const path = () => `/orgs/${org}/policy`;
  const DEFAULTS = {
    period: 'month',
    fiscal_year_start_month: 1,
    max_prompt_tokens: null,
    value_of_outcomes: null,
    compare_threshold_percent: 10,
    regression_drop: 0.5,
    judge_quota_calls: null,
    capture: 'full',
    pii: { enabled: false, kinds: ['email', 'phone', 'card', 'ip', 'ssn'], custom: [], mode: 'redact' },
  };

  test('a policy has defaults, accepts single fields, and null restores a default', async () => {
    expect(dataOf(await send('ann', 'GET', path()))).toEqual(DEFAULTS);
    // Only callers that may edit the redaction settings can read them.
    expect(dataOf(await send(vic, 'GET', path()))).toEqual(
      Object.fromEntries(Object.entries(DEFAULTS).filter(([name]) => name !== 'pii')),
    );
    const set = {
      period: 'fiscal_year',
      fiscal_year_start_month: 4,
      max_prompt_tokens: 8000,
      value_of_outcomes: 'tickets * 12.5 + leads * 40',
    };
    const changed = await send('ann', 'PUT', path(), set);
    expect([changed.status, dataOf(changed)]).toEqual([200, { ...DEFAULTS, ...set }]);
    const more = {
      regression_drop: 0.25,
      judge_quota_calls: 0,
      max_prompt_tokens: null,
      fiscal_year_start_month: null,
    };
    const both = { ...DEFAULTS, ...set, ...more, fiscal_year_start_month: 1 };
    expect(dataOf(await send('ann', 'PUT', path(), more))).toEqual(both);
    expect(dataOf(await send('ann', 'PUT', path(), {}))).toEqual(both);
    await eventually(
      async () => JSON.stringify(dataOf(await send('ann', 'GET', path(), undefined, two))) === JSON.stringify(both),
      {
        what: 'the policy elsewhere',
      },
    );
  });

  test('a policy keeps both of two concurrent changes made at two processes', async () => {
    await Promise.all([
      send('ann', 'PUT', path(), { max_prompt_tokens: 7 }, one),
      send('ann', 'PUT', path(), { judge_quota_calls: 9 }, two),
    ]);
    await eventually(async () => {
      const seen = dataOf(await send('ann', 'GET', path()));
      return seen['max_prompt_tokens'] === 7 && seen['judge_quota_calls'] === 9;
    });
  });

  test.each([
    [{ period: 'week' }, /^period: /],
    [{ fiscal_year_start_month: 13 }, /^fiscal_year_start_month: /],
    [{ max_prompt_tokens: 0 }, /^max_prompt_tokens: /],
    [{ max_prompt_tokens: 1.5 }, /^max_prompt_tokens: /],
    [{ value_of_outcomes: 'tickets *' }, /^value_of_outcomes: /],
    [{ value_of_outcomes: 'x'.repeat(1001) }, /^value_of_outcomes: /],
    [{ compare_threshold_percent: -1 }, /^compare_threshold_percent: /],
    [{ regression_drop: 'much' }, /^regression_drop: /],
    [{ judge_quota_calls: -1 }, /^judge_quota_calls: /],
    [{ pii: { enabled: 'yes' } }, /^pii\.enabled: /],
    [{ pii: { custom: [{ label: 'A', pattern: '(' }] } }, /^pii\.custom\[0\]\.pattern: /],
    [{ other: 1 }, /^other: /],
  ])('a policy of %j is invalid_request naming the field', async (body, detail) => {
    const answer = await send('ann', 'PUT', path(), body);
    expect([...said(answer), answer.json?.['detail']]).toEqual([
      422,
      'invalid_request',
      expect.stringMatching(detail) as string,
    ]);
    expect(dataOf(await send('ann', 'GET', path()))).toEqual(DEFAULTS);
  });

  test('only owners change a policy, and no key does', async () => {
    await join('adi', 'admin');
    expect(said(await send('adi', 'PUT', path(), { max_prompt_tokens: 5 }))).toEqual([403, 'forbidden']);
    expect(said(await call(one, 'PUT', '/orgs/org_test/policy', { body: { max_prompt_tokens: 5 } }))).toEqual([
      403,
      'forbidden',
    ]);
    expect((await call(one, 'GET', '/orgs/org_test/policy')).status).toBe(200);
  });
});
