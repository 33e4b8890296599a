// Requests that set fields, each sent twice: the second changes nothing. The test calls every PUT
// and PATCH of the API's own OpenAPI document with the document's example, so it covers new
// operations too.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { auditEntries } from '../../support/audited.ts';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';
import { type Operation, operationsOf, OWNER, pathOf } from './a_cast.ts';
import { ADMIN_TOKEN, type Answer, asUser, call, ORG, startTestApi, type TestApi, tokenOf } from './an_api.ts';

let database: TestDatabase;
let nats: TestNats;
let api: TestApi;
let owner: Record<string, string | undefined>;
let operations: Operation[];
const ids: Record<string, string> = { org_id: ORG };

const dataOf = (answer: Answer) => answer.json?.['data'] as Record<string, unknown>;
const byOwner = (method: string, path: string, body?: unknown) =>
  call(api, method, path, { headers: owner, ...(body === undefined ? {} : { body }) });

beforeAll(async () => {
  [database, nats] = await Promise.all([createTestDatabase(), startTestNats()]);
  api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: database.url });
  owner = asUser(await tokenOf({ sub: OWNER, email: 'owner@localhost.localdomain' }));
  await eventually(async () => (await call(api, 'GET', '/v1/budgets')).status === 200, {
    what: 'the store to be ready',
  });
  const email = 'bob@example.com';
  const { token } = dataOf(await byOwner('POST', `/orgs/${ORG}/members`, { email, role: 'viewer' }));
  const headers = asUser(await tokenOf({ sub: 'bob', email }));
  expect((await call(api, 'POST', `/orgs/${ORG}/members/accept`, { headers, body: { token } })).status).toBe(200);
  ids['user_id'] = 'bob';
  operations = await operationsOf(api);
  const judge = operations.find(({ name }) => name === 'POST /v1/judges');
  ids['judge_id'] = String(dataOf(await byOwner('POST', '/v1/judges', judge?.body))['judge_id']);
  const view = { name: 'Failed', page: 'traces', query: 'outcome=error', scope: 'private' };
  const queue = { name: 'Queue', scores: [{ name: 'correct', type: 'boolean' }] };
  ids['queue_id'] = String(dataOf(await byOwner('POST', '/v1/annotation-queues', queue))['queue_id']);
  ids['view_id'] = String(dataOf(await byOwner('POST', '/v1/views', view))['view_id']);
  const key = { name: 'limited', scopes: ['traces:read'] };
  ids['key_id'] = String((await byOwner('POST', `/orgs/${ORG}/api-keys`, key)).json?.['id']);
  const monitor = operations.find(({ name }) => name === 'POST /v1/monitors');
  ids['monitor_id'] = String(dataOf(await byOwner('POST', '/v1/monitors', monitor?.body))['monitor_id']);
  const prompt = { name: 'greeting', version: '1', template: 'Hello {{name}}' };
  ids['name'] = String(dataOf(await byOwner('POST', '/v1/prompts', prompt))['name']);
  ids['label'] = 'production';
  const hook = { url: 'http://127.0.0.1:9/hook', events: ['trace.completed'] };
  ids['webhook_id'] = String(dataOf(await byOwner('POST', `/orgs/${ORG}/webhooks`, hook))['webhook_id']);
});

afterAll(async () => {
  await api.close();
  await nats.remove();
  await database.drop();
});

/** Returns the actions that the audit log records as done, oldest first. */
const auditedActions = async (): Promise<string[]> =>
  (await auditEntries(api.log)).filter(({ phase }) => phase === 'done').map(({ action }) => action);

/** Returns the number of writes to each bucket. */
async function writesOfBuckets(): Promise<Record<string, number>> {
  const writes: Record<string, number> = {};
  for await (const { config, state } of api.log.jsm.streams.list('$KV.>')) writes[config.name] = state.last_seq;
  return writes;
}

const headersFor = (template: string) =>
  template.startsWith('/admin/')
    ? { 'X-Org-Api-Key': undefined, 'X-Org-Id': undefined, Authorization: `Bearer ${ADMIN_TOKEN}` }
    : owner;

const ask = ({ method, template }: Pick<Operation, 'method' | 'template'>, body?: unknown) =>
  call(api, method, pathOf(template, ids), { headers: headersFor(template), ...(body === undefined ? {} : { body }) });

/** Returns the parts of an answer that do not differ with each request. */
const shown = ({ status, json }: Answer) => ({ status, data: json?.['data'] });

/**
 * Returns what the repeat must answer, given the first answer. A secret, and the keys whose
 * permissions a change affected, are shown only once.
 */
function unmoved({ status, data }: ReturnType<typeof shown>): ReturnType<typeof shown> {
  const { secret, api_keys, ...rest } = data as Record<string, unknown>;
  expect(secret === undefined || typeof secret === 'string').toBe(true);
  return { status, data: api_keys === undefined ? rest : { ...rest, api_keys: [] } };
}

/** Bodies for operations whose example equals the current state. */
const BODIES: Readonly<Record<string, unknown>> = {
  'PUT /orgs/{org_id}/cost/anomaly-config': { z_threshold: 4 },
  'PATCH /admin/orgs/{org_id}': { name: 'Renamed' },
  'PUT /v1/prompts/{name}/labels/{label}': { version: '1' },
};

/**
 * PATCH of a run of LangSmith adds to a trace, and answers in LangSmith's shape.
 */
const isSetter = ({ method, template }: Operation): boolean =>
  (method === 'PUT' || method === 'PATCH') && !/^\/(?:langsmith|api\/public)\//.test(template);

/** POSTs that set existing fields, with their bodies. */
const SETTING_POSTS = [
  ['/orgs/{org_id}/budget/agents', { agent_id: 'agent_support', tokens: { soft_limit: 1, hard_limit: 2 } }],
  [
    '/orgs/{org_id}/budget/alerts',
    { channels: ['email'], thresholds: [{ resource: 'tokens', percent: 80, severity: 'warning' }] },
  ],
  ['/v1/budgets/{org_id}/alerts', { channels: ['webhook'], thresholds: [], webhook_url: 'http://127.0.0.1:9/alerts' }],
] as const;

describe('a PUT, PATCH or setting POST', () => {
  test('a repeated PUT, PATCH or setting POST writes no record, moves no updated_at and leaves no audit record', async () => {
    const setters = [
      ...operations
        .filter(isSetter)
        .map((operation) => ({ operation, body: BODIES[operation.name] ?? operation.body })),
      ...SETTING_POSTS.map(([template, body]) => ({
        operation: { method: 'POST', template, name: `POST ${template}` },
        body,
      })),
    ];
    expect(setters.length).toBeGreaterThan(11);
    for (const { operation, body } of setters) {
      const before = await auditedActions();
      const first = await ask(operation, body);
      expect([operation.name, first.status, first.status < 300 ? '' : first.text]).toEqual([
        operation.name,
        expect.toBeOneOf([200, 201]),
        '',
      ]);
      const actions = await auditedActions();
      expect([operation.name, actions.length]).toEqual([operation.name, before.length + 1]);
      const writes = await writesOfBuckets();
      const second = await ask(operation, body);
      expect([operation.name, shown(second)]).toEqual([operation.name, unmoved(shown(first))]);
      expect([operation.name, await auditedActions()]).toEqual([operation.name, actions]);
      expect([operation.name, await writesOfBuckets()]).toEqual([operation.name, writes]);
    }
  });

  test('the same fields in another order make no new version of a judge', async () => {
    const path = `/v1/judges/${String(ids['judge_id'])}`;
    const first = dataOf(await byOwner('PATCH', path, { scope: { tags: ['a'], agent_id: ['b'] } }));
    const second = dataOf(await byOwner('PATCH', path, { scope: { agent_id: ['b'], tags: ['a'] } }));
    expect(second).toEqual(first);
  });

  test('setting the defaults where nothing was set writes no record', async () => {
    const writes = await writesOfBuckets();
    const made = await call(api, 'POST', '/admin/orgs', {
      headers: headersFor('/admin/orgs'),
      body: {
        org_id: 'org_fresh',
        name: 'Fresh',
        plan_name: 'enterprise',
        owner: { user_id: OWNER, email: 'owner@localhost.localdomain' },
      },
    });
    expect(made.status).toBe(201);
    const asOwner = { ...owner, 'X-Org-Id': 'org_fresh' };
    for (const path of ['policy', 'pii-policy', 'retention', 'prices', 'cost/anomaly-config']) {
      const { data } = shown(await call(api, 'GET', `/orgs/org_fresh/${path}`, { headers: asOwner }));
      const put = await call(api, 'PUT', `/orgs/org_fresh/${path}`, { headers: asOwner, body: data });
      expect([path, shown(put)]).toEqual([path, { status: 200, data }]);
    }
    expect(await writesOfBuckets()).toEqual({ ...writes, KV_orgs: (writes['KV_orgs'] ?? 0) + 1 });
  });
});

describe('an empty body', () => {
  test('an empty body of a PUT or PATCH is invalid_request and changes nothing', async () => {
    for (const operation of operations.filter(isSetter)) {
      const writes = await writesOfBuckets();
      const answer = await ask(operation);
      expect([operation.name, answer.status, answer.json?.['code'], answer.json?.['detail']]).toEqual([
        operation.name,
        422,
        'invalid_request',
        'body: is empty; must be a JSON object with the fields to set',
      ]);
      expect([operation.name, await writesOfBuckets()]).toEqual([operation.name, writes]);
    }
  });

  test('an empty body of a POST that needs fields is invalid_request naming one, and accepted when all fields are optional', async () => {
    for (const template of [
      '/v1/judges',
      '/v1/datasets',
      '/v1/prompts',
      '/orgs/{org_id}/members',
      '/orgs/{org_id}/budget/alerts',
    ]) {
      const answer = await ask({ method: 'POST', template });
      expect([template, answer.status, answer.json?.['code']]).toEqual([template, 422, 'invalid_request']);
      expect(answer.json?.['detail']).toMatch(/^[a-z_]+: /);
    }
    expect((await ask({ method: 'POST', template: '/orgs/{org_id}/webhooks/{webhook_id}/secrets' })).status).toBe(201);
  });
});

describe('a name that no path can hold', () => {
  const UNADDRESSABLE = ['.', '..', 'a\u0000b', 'a\nb', 'a\u007fb', 'a\u0085b'];
  test.each<[string, string, (name: string) => unknown]>([
    ['agent_id', '/orgs/{org_id}/agents/register', (agent_id) => ({ agent_id, name: 'x', register_token: 'rt_x' })],
    ['name', '/v1/datasets', (name) => ({ name, version: '1', items: [{ input: {} }] })],
    ['version', '/v1/datasets', (version) => ({ name: 'd', version, items: [{ input: {} }] })],
    ['name', '/v1/prompts', (name) => ({ name, template: 'x' })],
    ['version', '/v1/prompts', (version) => ({ name: 'p', version, template: 'x' })],
    ['trace_id', '/v1/scores', (trace_id) => ({ trace_id, name: 'x', value: 1 })],
    [
      'org_id',
      '/admin/orgs',
      (org_id) => ({ org_id, name: 'x', plan_name: 'free', owner: { user_id: 'u', email: 'u@example.com' } }),
    ],
    [
      'owner.user_id',
      '/admin/orgs',
      (user_id) => ({ name: 'x', plan_name: 'free', owner: { user_id, email: 'u@example.com' } }),
    ],
  ])('a name that no path can contain is 422 naming %s at POST %s', async (field, template, bodyOf) => {
    for (const name of UNADDRESSABLE) {
      const answer = await ask({ method: 'POST', template }, bodyOf(name));
      expect([name, answer.status, answer.json?.['code']]).toEqual([name, 422, 'invalid_request']);
      expect(String(answer.json?.['detail'])).toMatch(new RegExp(`^${field}: must `));
    }
  });

  test('a name that no path can contain is 422 as the trace of an event, and as the sub of whoever accepts an invite', async () => {
    for (const trace_id of ['.', '..']) {
      const event = { name: 'x', outcome: 'success', duration_ms: 1, trace_id };
      const answer = await call(api, 'POST', `/orgs/${ORG}/ingest/custom`, { body: { events: [event] } });
      expect([answer.status, answer.json?.['code']]).toEqual([422, 'decode_failed']);
    }
    const email = 'dots@example.com';
    const { token } = dataOf(await byOwner('POST', `/orgs/${ORG}/members`, { email, role: 'viewer' }));
    const headers = asUser(await tokenOf({ sub: '..', email }));
    const answer = await call(api, 'POST', `/orgs/${ORG}/members/accept`, { headers, body: { token } });
    expect([answer.status, answer.json?.['code']]).toEqual([422, 'invalid_request']);
  });
});

describe('a query parameter that takes one of a list', () => {
  test.each([
    ['/orgs/{org_id}/members?role=boss', 'role', ['viewer', 'member', 'admin', 'owner']],
    ['/orgs/{org_id}/members?status=gone', 'status', ['invited', 'active']],
    ['/v1/jobs?kind=nonsense', 'kind', ['restore', 'erase']],
    ['/v1/jobs?status=nonsense', 'status', ['queued', 'running', 'complete', 'failed']],
    ['/v1/traces?outcome=nonsense', 'outcome', ['success', 'error', 'timeout']],
    ['/v1/spans/search?q=x&outcome=nonsense', 'outcome', ['success', 'error', 'timeout']],
    ['/v1/judges?kind=nonsense', 'kind', ['deterministic', 'llm']],
    ['/v1/judges?enabled=nonsense', 'enabled', ['true', 'false']],
    ['/v1/evals?status=nonsense', 'status', ['running', 'complete', 'failed']],
    ['/v1/incidents?status=nonsense', 'status', ['open', 'resolved']],
    ['/v1/incidents?severity=nonsense', 'severity', ['warning', 'critical']],
    ['/v1/cost/summary?group_by=nonsense', 'group_by', ['model', 'agent_id', 'realm', 'department']],
    ['/orgs/{org_id}/agents?framework=nonsense', 'framework', ['chatcompletion', 'chain']],
    ['/orgs/{org_id}/agents?archived=nonsense', 'archived', ['true', 'false']],
    ['/orgs/{org_id}/webhooks/{webhook_id}/deliveries?outcome=nonsense', 'outcome', ['delivered', 'failed']],
  ])(
    'a query parameter with a list of values answers 422 to %s, naming the parameter and the accepted values',
    async (template, field, accepted) => {
      const answer = await ask({ method: 'GET', template });
      expect(answer.status).toBe(422);
      const detail = String(answer.json?.['detail']);
      expect(detail.startsWith(`${field}: `)).toBe(true);
      for (const value of accepted) expect(detail).toContain(value);
    },
  );

  test('members are filtered by role and status', async () => {
    const listed = async (query: string) =>
      ((await byOwner('GET', `/orgs/${ORG}/members?${query}`)).json?.['data'] as { email: string }[]).map(
        ({ email }) => email,
      );
    expect(await listed('role=owner')).toEqual(['owner@localhost.localdomain']);
    expect(await listed('status=invited')).toEqual(['dots@example.com']);
    expect(await listed('status=active')).toContain('bob@example.com');
    expect(await listed('status=invited&role=owner')).toEqual([]);
  });
});
