// How much of the shared stores one organization can fill. The rejection names the bound, the bound
// holds in every process and after a restart, and it affects no other organization. The test writes
// to the stores directly, so that a bound of thousands does not need a thousand requests.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { AGENTS_BYTES_ORG_MAX, AGENTS_ORG_MAX } from '../../../api/control/agents/agents.ts';
import { AgentStore } from '../../../api/control/agents/store.ts';
import { TOKENS_ORG_MAX } from '../../../api/control/agents/tokens.ts';
import { DATASETS_BYTES_MAX } from '../../../api/control/datasets/datasets.ts';
import { ANSWERS_TENANT_BYTES_MAX } from '../../../api/http/idempotency.ts';
import { placeOf } from '../../../api/http/keyed_store.ts';
import { JUDGES_BYTES_ORG_MAX } from '../../../api/control/judges/judges.ts';
import { OLD_VERSIONS_MAX } from '../../../api/control/judges/store.ts';
import { API_KEYS_ORG_MAX } from '../../../api/control/orgs/orgs.ts';
import { type KeyRecord, NO_KEY_LIMITS } from '../../../schemas/records/api_key.ts';
import { ENDED_JOBS_MAX, JobRecords, OPEN_JOBS_MAX } from '../../../ops/exchange/job_records.ts';
import { agentKey, type AgentRecord } from '../../../schemas/records/agent.ts';
import { datasetKey, type DatasetRecord } from '../../../schemas/records/dataset.ts';
import { longJobKey, newLongJob } from '../../../schemas/records/job_record.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';
import { anAccount, type Caller } from '../a_tenant.ts';
import { type Answer, asUser, call, startTestApi, type TestApi, tokenOf } from './an_api.ts';

const MIB = 1024 * 1024;
const AT = '2026-01-02T03:04:05.000Z';
let nats: TestNats;
let one: TestApi;
let two: TestApi;
let org = '';
let other = '';
const keys = new Map<string, Caller>();

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

async function makeOrg(): Promise<string> {
  const rate_limits = { ingest_per_minute: 1_000_000, api_per_minute: 1_000_000, burst: 1_000_000 };
  const { org, key } = await anAccount({ api: one }, { fields: { rate_limits } });
  keys.set(org, key);
  const shown = () => call(two, 'GET', `/orgs/${org}`, { headers: key });
  await eventually(async () => (await shown()).status === 200, { what: 'the organization in the other process' });
  return org;
}

beforeEach(async () => {
  org = await makeOrg();
  other = await makeOrg();
});

const post = (
  api: TestApi,
  of: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> =>
  call(api, 'POST', path, {
    headers: { ...keys.get(of), ...headers },
    ...(body === undefined ? {} : { body }),
  });
const said = ({ status, json }: Answer) => [status, json?.['code']];
const dataOf = (answer: Answer) => answer.json?.['data'] as Record<string, unknown>;

/** Writes many keys to a bucket, `atOnce` of them concurrently. */
async function fill(
  bucket: Parameters<TestApi['log']['bucket']>[0],
  records: readonly (readonly [key: string, value: unknown])[],
  atOnce = 500,
): Promise<void> {
  const kv = await one.log.bucket(bucket);
  for (let at = 0; at < records.length; at += atOnce)
    await Promise.all(records.slice(at, at + atOnce).map(([key, value]) => kv.put(key, JSON.stringify(value))));
}

const countOf = async (bucket: string, filter: string): Promise<number> =>
  Object.keys(
    (await one.log.jsm.streams.info(`KV_${bucket}`, { subjects_filter: `$KV.${bucket}.${filter}` })).state.subjects ??
      {},
  ).length;

describe('idempotency answers', () => {
  test("idempotency answers beyond an organization's share reject new keys before anything is done, and drop no answer within its day", async () => {
    const path = `/orgs/${org}/api-keys`;
    const make = (api: TestApi, key: string, of = org) =>
      post(api, of, `/orgs/${of}/api-keys`, { name: 'made', scopes: ['traces:read'] }, { 'Idempotency-Key': key });
    const first = randomUUID();
    const answered = await make(one, first);
    expect(answered.status).toBe(201);
    const kv = await one.log.bucket('idempotency');
    const part = 'x'.repeat(4 * MIB);
    for (let n = 0; n * part.length < ANSWERS_TENANT_BYTES_MAX; n++)
      await kv.put(placeOf(`org:${org}`, 'POST /x', String(n)).at, part);
    const restarted = await startTestApi({ natsUrl: nats.url });
    try {
      // One process that has not counted yet, and one that has just started.
      for (const api of [two, restarted]) {
        const refused = await make(api, randomUUID());
        expect(said(refused)).toEqual([429, 'rate_limited']);
        expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(3600);
        expect(refused.json?.['detail']).toMatch(/^Idempotency-Key: .*64 MiB.*Nothing was done/);
        const again = await make(api, first);
        expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([201, 'true']);
        expect((await make(api, randomUUID(), other)).status).toBe(201);
        expect((await post(api, org, path, { name: 'without a key', scopes: ['traces:read'] })).status).toBe(201);
      }
    } finally {
      await restarted.close();
    }
    await kv.delete(placeOf(`org:${org}`, 'POST /x', '0').at);
    await kv.delete(placeOf(`org:${org}`, 'POST /x', '1').at);
    await eventually(async () => (await make(two, randomUUID())).status === 201, {
      what: 'room after answers expired',
    });
  });
});

test('an organization has a bounded number of API keys', async () => {
  const aKey = (n: number): KeyRecord => ({
    id: `ak_${org}_${n}`,
    org_id: org,
    name: 'k',
    key_prefix: 'sk_svc_xxxxx',
    scopes: ['traces:read'],
    created_at: AT,
    created_by: null,
    ...NO_KEY_LIMITS,
  });
  await fill(
    'api_keys',
    Array.from({ length: API_KEYS_ORG_MAX - 1 }, (_, n) => [`${String(n).padStart(8, '0')}${org}`, aKey(n)]),
  );
  const make = (api: TestApi, of = org) =>
    post(api, of, `/orgs/${of}/api-keys`, { name: 'k', scopes: ['traces:read'] });
  for (const api of [one, two]) {
    await eventually(async () => (await make(api)).status === 409, { what: 'the keys to be seen' });
    expect((await make(api)).json?.['detail']).toBe('An organization has at most 1000 API keys. Revoke one first.');
    expect((await make(api, other)).status).toBe(201);
  }
  expect(
    (
      await call(one, 'DELETE', `/orgs/${org}/api-keys/ak_${org}_1`, {
        headers: { ...keys.get(org) },
      })
    ).status,
  ).toBe(200);
  expect((await make(one)).status).toBe(201);
});

describe('agents', () => {
  const anAgent = (n: number, over: Partial<AgentRecord> = {}): AgentRecord => ({
    org_id: org,
    agent_id: `agent-${n}`,
    name: 'Agent',
    framework: null,
    version: null,
    repo_url: null,
    tags: [],
    metadata: {},
    registered_at: AT,
    updated_at: AT,
    archived_at: null,
    deprecated_at: null,
    register_token_hash: 'h',
    ...over,
  });
  const register = async (api: TestApi, agent_id: string, of = org) => {
    const token = dataOf(await post(api, of, `/orgs/${of}/agents/register-tokens`))['register_token'];
    return post(api, of, `/orgs/${of}/agents/register`, { agent_id, name: 'New', register_token: token });
  };

  test('agents are counted by organization as they are added and removed', async () => {
    const store = await AgentStore.open(one.log, () => undefined);
    const before = store.sizes(org);
    expect(before).toEqual({ count: 0, bytes: 0 });
    await store.change(org, 'a', () => anAgent(1, { agent_id: 'a', archived_at: AT }));
    await store.change(org, 'a', (agent) => (agent === undefined ? null : { ...agent, name: 'longer name' }));
    const record = store.get(org, 'a');
    expect(store.sizes(org)).toEqual({ count: 1, bytes: Buffer.byteLength(JSON.stringify(record)) });
    expect([await store.forgetArchived(org), await store.forgetArchived(org), store.sizes(org)]).toEqual([
      true,
      false,
      before,
    ]);
    store.close();
    expect(AGENTS_ORG_MAX).toBe(50_000);
  });

  test('agents have a byte share: a new one is rejected while none is archived, and replaces the one archived longest ago', async () => {
    const metadata = { text: 'x'.repeat(4 * MIB - 1024) };
    const records = Array.from({ length: AGENTS_BYTES_ORG_MAX / (4 * MIB) + 1 }, (_, n) => anAgent(n, { metadata }));
    await fill(
      'agents',
      records.map((agent) => [agentKey(org, agent.agent_id), agent]),
      1,
    );
    for (const api of [one, two]) {
      await eventually(async () => (await register(api, 'fresh')).status === 409, { what: 'the agents to be seen' });
      const refused = await register(api, 'fresh');
      expect([...said(refused), refused.json?.['detail']]).toEqual([
        409,
        'conflict',
        expect.stringMatching(/at most 50000 agents with 67108864 bytes.*Archive/) as string,
      ]);
      expect((await register(api, `fresh-${api.port}`, other)).status).toBe(201);
    }
    const headers = { ...keys.get(org) };
    for (const id of ['agent-3', 'agent-1'])
      expect((await call(one, 'DELETE', `/orgs/${org}/agents/${id}`, { headers })).status).toBe(200);
    expect((await register(one, 'fresh')).status).toBe(201);
    expect(said(await call(one, 'GET', `/orgs/${org}/agents/agent-3`, { headers }))).toEqual([404, 'agent_not_found']);
    expect((await call(one, 'GET', `/orgs/${org}/agents/agent-1`, { headers })).status).toBe(200);
  });

  test('an organization gets a bounded number of register tokens, and the rejection says when there is room', async () => {
    await fill(
      'register_tokens',
      Array.from({ length: TOKENS_ORG_MAX }, (_, n) => [`${org}.${n}`, { org_id: org }]),
    );
    for (const api of [one, two]) {
      const refused = await post(api, org, `/orgs/${org}/agents/register-tokens`);
      expect(said(refused)).toEqual([429, 'rate_limited']);
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(24 * 3600);
      expect((await post(api, other, `/orgs/${other}/agents/register-tokens`)).status).toBe(201);
    }
  });
});

test("an organization's datasets have a byte share in addition to their number", async () => {
  const record: DatasetRecord = {
    org_id: org,
    dataset_id: 'ds_0123456789abcdef',
    name: 'large',
    version: '1',
    item_count: 1,
    digest: 'd',
    parts: [0],
    bytes: DATASETS_BYTES_MAX - 10,
    created_at: AT,
  };
  await fill('datasets', [[datasetKey(org, record.dataset_id), record]]);
  const make = (api: TestApi, of = org) =>
    post(api, of, '/v1/datasets', {
      name: randomUUID(),
      version: '1',
      items: [{ input: { text: 'more than ten bytes' } }],
    });
  for (const api of [one, two]) {
    await eventually(async () => (await make(api)).status === 409, { what: 'the dataset to be seen' });
    const refused = await make(api);
    expect([...said(refused), refused.json?.['detail']]).toEqual([
      409,
      'conflict',
      expect.stringMatching(/at most 1073741824 bytes of items.*Delete one first/) as string,
    ]);
    expect((await make(api, other)).status).toBe(201);
  }
});

describe('judges', () => {
  /** Returns a judge of about this many bytes. Each character has three bytes. */
  const aJudge = (bytes: number) => {
    const text = '€'.repeat(Math.min(50_000, Math.floor(bytes / 3)));
    const criterion = '€'.repeat(Math.max(1, Math.floor((bytes - 150_000) / 150)));
    const rubric = { scale: [0, 1], criteria: Array.from({ length: 50 }, () => criterion) };
    return {
      name: 'j',
      kind: 'llm',
      enabled: false,
      threshold: { pass: 1 },
      prompt_template: text,
      model: 'm',
      rubric,
    };
  };

  test('judges have a maximum size each and a byte share together', async () => {
    const large = await post(one, org, '/v1/judges', aJudge(300_000));
    expect([...said(large), large.json?.['detail']]).toEqual([
      422,
      'invalid_request',
      expect.stringMatching(/^body: a judge must have at most 262144 bytes/) as string,
    ]);
    let made = 0;
    let last: Answer;
    do last = await post(one, org, '/v1/judges', aJudge(250_000));
    while (last.status === 201 && ++made < 100);
    expect([...said(last), last.json?.['detail']]).toEqual([
      409,
      'conflict',
      expect.stringMatching(/^The judges of an organization have at most 16777216 bytes/) as string,
    ]);
    expect(made * 250_000).toBeLessThan(JUDGES_BYTES_ORG_MAX);
    expect((await post(one, other, '/v1/judges', aJudge(250_000))).status).toBe(201);
  });

  test('a bounded number of older versions of a judge is kept', async () => {
    const judge_id = String(dataOf(await post(one, org, '/v1/judges', aJudge(10)))['judge_id']);
    const headers = { ...keys.get(org) };
    for (let n = 0; n < OLD_VERSIONS_MAX + 5; n++)
      expect((await call(one, 'PATCH', `/v1/judges/${judge_id}`, { headers, body: { name: `n${n}` } })).status).toBe(
        200,
      );
    expect(await countOf('judge_versions', `${org}.>`)).toBe(OLD_VERSIONS_MAX);
  });
});

describe('jobs', () => {
  test('finished jobs are kept up to a number, beyond which the oldest are dropped', async () => {
    const over = (n: number) => {
      const job_id = `job_${String(n).padStart(16, '0')}`;
      const job = newLongJob({
        job_id,
        org_id: org,
        kind: 'restore',
        args: {},
        created_at: new Date(Date.parse(AT) + n).toISOString(),
      });
      return [longJobKey(org, job_id), { ...job, status: 'complete' }] as const;
    };
    await fill(
      'job_records',
      Array.from({ length: ENDED_JOBS_MAX + 3 }, (_, n) => over(n)),
    );
    const records = await JobRecords.open(one.log, () => undefined);
    await records.forgetOldest(org);
    const left = records.all(org).map(({ job_id }) => job_id);
    expect([left.length, left.includes('job_0000000000000002'), left.includes('job_0000000000000003')]).toEqual([
      ENDED_JOBS_MAX,
      false,
      true,
    ]);
    records.close();
  });

  test('rejected jobs leave no value behind', async () => {
    const owner = asUser(await tokenOf({ sub: `u_${org}`, email: `${org}@example.com` }), org);
    const erase = () =>
      call(one, 'POST', `/orgs/${org}/gdpr/erase`, { headers: owner, body: { attribute: 'user_id', value: 'u' } });
    for (let n = 0; n < OPEN_JOBS_MAX; n++) expect((await erase()).status).toBe(202);
    for (let n = 0; n < 3; n++) expect(said(await erase())).toEqual([409, 'conflict']);
    expect(await countOf('erase_asks', `${org}.>`)).toBe(OPEN_JOBS_MAX);
  });
});

test('addresses of webhooks and alerts have a maximum length', async () => {
  const url = `https://example.com/${'x'.repeat(2048)}`;
  const hook = await post(one, org, `/orgs/${org}/webhooks`, { url, events: ['trace.completed'] });
  expect([...said(hook), hook.json?.['detail']]).toEqual([
    422,
    'invalid_request',
    expect.stringMatching(/^url: /) as string,
  ]);
  const alert = await post(one, org, `/orgs/${org}/budget/alerts`, {
    channels: ['webhook'],
    thresholds: [],
    webhook_url: url,
  });
  expect([...said(alert), alert.json?.['detail']]).toEqual([
    422,
    'invalid_request',
    expect.stringMatching(/^webhook_url: /) as string,
  ]);
});
