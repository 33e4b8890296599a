// Organizations and API keys over two API instances on one nats-server: which callers are admitted,
// which are rejected, and how fast a revocation takes effect.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';
import { ADMIN_TOKEN, anEvent, call, INGEST, KEY, ORG, startTestApi, type TestApi } from './an_api.ts';

let nats: TestNats;
let one: TestApi;
let two: TestApi;

beforeAll(async () => {
  nats = await startTestNats();
  one = await startTestApi({ natsUrl: nats.url });
  two = await startTestApi({ natsUrl: nats.url });
});

afterAll(async () => {
  await one.close();
  await two.close();
  await nats.remove();
});

const operator = { Authorization: `Bearer ${ADMIN_TOKEN}` };
const owner = { user_id: 'user_1', email: 'owner@example.com' };
const asBearer = (key: string, org: string) => ({
  'X-Org-Api-Key': '',
  Authorization: `Bearer ${key}`,
  'X-Org-Id': org,
});
const withKey = (key: string, org: string) => ({ 'X-Org-Api-Key': key, 'X-Org-Id': org });

async function makeKey(scopes: string[], by: Record<string, string> = {}): Promise<{ id: string; raw_key: string }> {
  const answer = await call(one, 'POST', `/orgs/${ORG}/api-keys`, { body: { name: 'k', scopes }, headers: by });
  expect(answer.status).toBe(201);
  return answer.json as unknown as { id: string; raw_key: string };
}

describe('credentials', () => {
  test('a key works in both header forms, with and without X-Org-Id', async () => {
    for (const headers of [
      { 'X-Org-Api-Key': KEY, 'X-Org-Id': ORG },
      { 'X-Org-Api-Key': KEY },
      { Authorization: `Bearer ${KEY}`, 'X-Org-Id': ORG },
      { Authorization: `bearer ${KEY}` },
    ]) {
      const response = await fetch(`${one.url}/orgs/${ORG}`, { headers: headers as Record<string, string> });
      expect([JSON.stringify(headers), response.status]).toEqual([JSON.stringify(headers), 200]);
    }
  });

  test.each([
    ['nothing', {}],
    ['an unknown key', { 'X-Org-Api-Key': 'sk_svc_unknownunknownunknown' }],
    ['no key at all', { Authorization: 'Basic dTpw' }],
    ['an empty bearer', { Authorization: 'Bearer ' }],
  ])('%s is 401', async (_what, headers) => {
    for (const path of [`/orgs/${ORG}`, '/admin/orgs']) {
      const response = await fetch(one.url + path, { headers: headers as Record<string, string> });
      const body = (await response.json()) as Record<string, unknown>;
      expect([response.status, body['code'], body['request_id']]).toEqual([
        401,
        'unauthenticated',
        response.headers.get('x-request-id'),
      ]);
    }
  });

  test('another organization in the path or in X-Org-Id is cross_org_access, whether it exists or not', async () => {
    for (const [path, headers] of [
      ['/orgs/org_of_others', {}],
      [`/orgs/${ORG}`, { 'X-Org-Id': 'org_of_others' }],
      ['/orgs/org_of_others/ingest/custom', {}],
    ] as const) {
      const answer = await call(one, path.endsWith('custom') ? 'POST' : 'GET', path, {
        headers,
        ...(path.endsWith('custom') ? { body: anEvent() } : {}),
      });
      expect([path, answer.status, answer.json?.['code']]).toEqual([path, 403, 'cross_org_access']);
    }
  });

  test('a missing scope is forbidden, and named', async () => {
    const { raw_key } = await makeKey(['traces:read']);
    const answer = await call(one, 'POST', `${INGEST}/custom`, { body: anEvent(), headers: withKey(raw_key, ORG) });
    expect([answer.status, answer.json?.['code']]).toEqual([403, 'forbidden']);
    expect(answer.json?.['detail']).toContain('ingest:write');
  });

  test('the operator token opens no organization, and a key opens no operator endpoint', async () => {
    const asOrg = await fetch(`${one.url}/orgs/${ORG}`, { headers: operator });
    expect(asOrg.status).toBe(401);
    const asOperator = await fetch(`${one.url}/admin/orgs`, { headers: { Authorization: `Bearer ${KEY}` } });
    expect([asOperator.status, ((await asOperator.json()) as Record<string, unknown>)['code']]).toEqual([
      403,
      'forbidden',
    ]);
  });
});

describe('API keys', () => {
  test('the raw key is shown once; lists show its prefix', async () => {
    const made = await call(one, 'POST', `/orgs/${ORG}/api-keys`, {
      body: { name: 'shown', scopes: ['ingest:write', 'traces:read'] },
    });
    const raw = String(made.json?.['raw_key']);
    expect(made.json).toEqual({
      id: expect.stringMatching(/^ak_/) as string,
      name: 'shown',
      key_prefix: raw.slice(0, 12),
      scopes: ['ingest:write', 'traces:read'],
      raw_key: raw,
    });
    expect(raw).toMatch(/^sk_svc_[A-Za-z0-9_-]{32,}$/);
    const list = await call(one, 'GET', `/orgs/${ORG}/api-keys`);
    expect(list.text).toContain(raw.slice(0, 12));
    expect(list.text).not.toContain(raw);
    const kv = await one.log.bucket('api_keys');
    for await (const key of await kv.keys()) expect((await kv.get(key))?.string()).not.toContain(raw);
  });

  test('a key creates keys with at most its own scopes', async () => {
    const maker = await makeKey(['org:write', 'ingest:write']);
    await makeKey(['ingest:write'], withKey(maker.raw_key, ORG));
    for (const scopes of [['traces:read'], ['*'], ['ingest:write', 'org:read']]) {
      const answer = await call(one, 'POST', `/orgs/${ORG}/api-keys`, {
        body: { name: 'more', scopes },
        headers: withKey(maker.raw_key, ORG),
      });
      expect([answer.status, answer.json?.['code']]).toEqual([403, 'forbidden']);
    }
  });

  test.each([
    ['an unknown scope', { name: 'k', scopes: ['everything'] }, /^scopes\[0\]: /],
    ['no scope', { name: 'k', scopes: [] }, /^scopes: /],
    ['no name', { scopes: ['*'] }, /^name: /],
    ['no object', [], /^body: /],
  ])('a key for %s is invalid_request naming the field', async (_what, body, detail) => {
    const answer = await call(one, 'POST', `/orgs/${ORG}/api-keys`, { body });
    expect([answer.status, answer.json?.['code']]).toEqual([422, 'invalid_request']);
    expect(answer.json?.['detail']).toMatch(detail);
  });

  test('every instance rejects a revoked key', async () => {
    const { id, raw_key } = await makeKey(['org:read']);
    const status = async (api: TestApi) =>
      (await call(api, 'GET', `/orgs/${ORG}`, { headers: withKey(raw_key, ORG) })).status;
    await eventually(async () => (await status(two)) === 200, { what: 'the key at the other instance' });
    const revoked = await call(one, 'DELETE', `/orgs/${ORG}/api-keys/${id}`);
    expect([revoked.status, revoked.json?.['data']]).toEqual([200, { id, deleted: true }]);
    expect(await status(one)).toBe(401);
    await eventually(async () => (await status(two)) === 401, { what: 'the refusal at the other instance' });
    expect((await call(one, 'DELETE', `/orgs/${ORG}/api-keys/${id}`)).json?.['code']).toBe('api_key_not_found');
  });

  test('keys created and revoked around a restart of NATS are right everywhere after it', async () => {
    const gone = await makeKey(['org:read']);
    const status = async (api: TestApi, key: string) =>
      (await call(api, 'GET', `/orgs/${ORG}`, { headers: withKey(key, ORG) })).status;
    await eventually(async () => (await status(two, gone.raw_key)) === 200);
    await nats.kill();
    await nats.start();
    await eventually(async () => (await call(one, 'DELETE', `/orgs/${ORG}/api-keys/${gone.id}`)).status === 200, {
      what: 'a write after the restart',
    });
    const made = await makeKey(['org:read']);
    await eventually(
      async () => (await status(two, gone.raw_key)) === 401 && (await status(two, made.raw_key)) === 200,
      {
        what: 'both changes at the other instance',
      },
    );
  });
});

describe('the first key', () => {
  const [first, second] = ['sk_svc_AAAAAAAAAAAAAAAAAAAA', 'sk_svc_BBBBBBBBBBBBBBBBBBBB'] as const;
  const statusAt = async (api: TestApi, key: string) =>
    (await call(api, 'GET', `/orgs/${ORG}`, { headers: withKey(key, ORG) })).status;
  const started = async <T>(bootstrapKey: string, look: (api: TestApi) => Promise<T>): Promise<T> => {
    const api = await startTestApi({ natsUrl: nats.url, bootstrapKey });
    try {
      return await look(api);
    } finally {
      await api.close();
    }
  };
  const statusAfterStart = (key: string, bootstrapKey = key) => started(bootstrapKey, (api) => statusAt(api, key));

  test('a revoked first key stays revoked at every later start, and another value creates another key', async () => {
    // A process that did not create the key learns of it a moment later.
    const works = (api: TestApi) => eventually(async () => (await statusAt(api, first)) === 200);
    await Promise.all([first, first, first].map((key) => started(key, works)));
    const id = await eventuallyKeyId(first);
    expect((await call(one, 'DELETE', `/orgs/${ORG}/api-keys/${id}`)).status).toBe(200);
    expect(await Promise.all([first, first, first].map((key) => statusAfterStart(key)))).toEqual([401, 401, 401]);
    await nats.kill();
    await nats.start();
    expect(await statusAfterStart(first)).toBe(401);
    expect(await statusAfterStart(second)).toBe(200);
    expect(await statusAfterStart(first, second)).toBe(401);
    // KEY, the first key of every other start, still works.
    expect(await statusAfterStart(KEY)).toBe(200);
    for (const api of [one, two])
      await eventually(
        async () => (await call(api, 'PATCH', `/admin/orgs/${ORG}`, { body: {}, headers: operator })).status === 200,
        {
          what: 'a write after the restart',
        },
      );
  });

  async function eventuallyKeyId(raw: string): Promise<string> {
    let id = '';
    await eventually(async () => {
      const list = await call(one, 'GET', `/orgs/${ORG}/api-keys?limit=200`);
      const keys = list.json?.['data'] as { id: string; key_prefix: string }[];
      id = keys.find(({ key_prefix }) => key_prefix === raw.slice(0, 12))?.id ?? '';
      return id !== '';
    });
    return id;
  }
});

describe('the operator', () => {
  const org = { org_id: 'org.acme-1', name: 'Acme', plan_name: 'pro', owner };

  test('the operator creates, lists and changes organizations, and gives a new one its first key', async () => {
    const made = await call(one, 'POST', '/admin/orgs', { body: org, headers: operator });
    expect([made.status, made.json?.['data']]).toEqual([
      201,
      expect.objectContaining({ ...org, overage_budget_usd: null, rate_limits: null }) as unknown,
    ]);
    expect((await call(one, 'POST', '/admin/orgs', { body: org, headers: operator })).json?.['code']).toBe('conflict');
    const list = await call(one, 'GET', '/admin/orgs?limit=1', { headers: operator });
    expect(list.json).toMatchObject({
      data: [{ org_id: 'org.acme-1' }],
      meta: { total: 2, page: 1, per_page: 1, has_more: true },
    });
    const changed = await call(one, 'PATCH', '/admin/orgs/org.acme-1', {
      body: {
        plan_name: 'enterprise',
        rate_limits: { ingest_per_minute: 10, api_per_minute: 10, burst: 5 },
        overage_budget_usd: 5,
      },
      headers: operator,
    });
    expect(changed.json?.['data']).toMatchObject({
      plan_name: 'enterprise',
      rate_limits: { burst: 5 },
      overage_budget_usd: 5,
      name: 'Acme',
    });
    const cleared = await call(one, 'PATCH', '/admin/orgs/org.acme-1', {
      body: { overage_budget_usd: null },
      headers: operator,
    });
    expect(cleared.json?.['data']).toMatchObject({ overage_budget_usd: null, plan_name: 'enterprise' });
    const key = await call(one, 'POST', '/admin/orgs/org.acme-1/api-keys', {
      body: { name: 'first', scopes: ['*'] },
      headers: operator,
    });
    expect(key.status).toBe(201);
    const own = await call(one, 'GET', '/orgs/org.acme-1', {
      headers: withKey(String(key.json?.['raw_key']), 'org.acme-1'),
    });
    expect(own.json?.['data']).toMatchObject({ org_id: 'org.acme-1', plan_name: 'enterprise' });
  });

  test('the operator gets clear errors for unknown organizations and for limits that a plan does not allow', async () => {
    expect(
      (await call(one, 'PATCH', '/admin/orgs/org_none', { body: { name: 'x' }, headers: operator })).json?.['code'],
    ).toBe('org_not_found');
    expect(
      (
        await call(one, 'POST', '/admin/orgs/org_none/api-keys', {
          body: { name: 'x', scopes: ['*'] },
          headers: operator,
        })
      ).json?.['code'],
    ).toBe('org_not_found');
    const limits = await call(one, 'POST', '/admin/orgs', {
      body: { ...org, org_id: 'org_l', rate_limits: { ingest_per_minute: 1, api_per_minute: 1, burst: 1 } },
      headers: operator,
    });
    expect([limits.status, limits.json?.['detail']]).toEqual([422, expect.stringMatching(/^rate_limits: /) as string]);
  });

  test('an organization that leaves enterprise loses its own limits with the plan', async () => {
    const rate_limits = { ingest_per_minute: 10, api_per_minute: 10, burst: 5 };
    const body = { ...org, org_id: 'org_leaves', plan_name: 'enterprise', rate_limits };
    expect((await call(one, 'POST', '/admin/orgs', { body, headers: operator })).status).toBe(201);
    const patch = (fields: Record<string, unknown>) =>
      call(one, 'PATCH', '/admin/orgs/org_leaves', { body: fields, headers: operator });
    expect((await patch({ plan_name: 'pro', rate_limits })).status).toBe(422);
    const left = await patch({ plan_name: 'pro' });
    expect([left.status, left.json?.['data']]).toEqual([
      200,
      expect.objectContaining({ plan_name: 'pro', rate_limits: null }) as unknown,
    ]);
    expect((await patch({ plan_name: 'enterprise' })).json?.['data']).toMatchObject({
      plan_name: 'enterprise',
      rate_limits: null,
    });
  });

  test('two concurrent changes of different fields are both kept', async () => {
    await call(one, 'POST', '/admin/orgs', { body: { ...org, org_id: 'org_race' }, headers: operator });
    await eventually(
      async () => (await call(two, 'PATCH', '/admin/orgs/org_race', { body: {}, headers: operator })).status === 200,
    );
    const patches = [one, two].flatMap((api, index) => [
      call(api, 'PATCH', '/admin/orgs/org_race', {
        body: index === 0 ? { name: 'new' } : { overage_budget_usd: 7 },
        headers: operator,
      }),
    ]);
    expect((await Promise.all(patches)).map(({ status }) => status)).toEqual([200, 200]);
    await eventually(async () => {
      const list = await call(one, 'GET', '/admin/orgs', { headers: operator });
      const found = (list.json?.['data'] as { org_id: string; name: string; overage_budget_usd: number }[]).find(
        ({ org_id }) => org_id === 'org_race',
      );
      return found?.name === 'new' && found.overage_budget_usd === 7;
    });
  });
});

test('a bearer key with an empty X-Org-Api-Key is recognised', async () => {
  expect((await call(one, 'GET', `/orgs/${ORG}`, { headers: asBearer(KEY, ORG) })).status).toBe(401);
});
