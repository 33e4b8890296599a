// The gateway's cache of answers, its capture mode, the caller's own credential, weighted upstreams
// and circuits, with the official packages of both APIs.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { events, json, type ModelServer, startModelServer } from '../../support/model_server.ts';
import { removeDir, tempDir } from '../../support/temp.ts';
import { eventually } from '../../support/wait.ts';
import { TestService } from '../a_service.ts';
import { type Answer, asUser, call, KEY, ORG, type TestApi, tokenOf } from '../api/an_api.ts';
import { COMPLETION, LAST, question, STREAM } from './openai_shapes.ts';
import { MESSAGE } from './anthropic_shapes.ts';

type Data = Record<string, unknown>;

let folder: string;
let service: TestService;
let servers: [first: ModelServer, second: ModelServer];
let apis: [one: TestApi, other: TestApi];

beforeAll(async () => {
  folder = tempDir('gateway');
  servers = [await startModelServer(), await startModelServer()];
  const routes = path.join(folder, 'routes.json');
  const [first, second] = servers.map(({ url }) => url);
  writeFileSync(
    routes,
    JSON.stringify([
      { model: 'own-*', credential: 'caller', upstreams: [{ base_url: first }] },
      { model: 'claude-*', api: 'anthropic', credential: 'caller', upstreams: [{ base_url: first }] },
      {
        model: 'shared-*',
        upstreams: [
          { base_url: first, weight: 1 },
          { base_url: second, weight: 3 },
        ],
      },
      { model: '*', upstreams: [{ base_url: first, api_key_env: 'FIRST_KEY' }, { base_url: second }] },
    ]),
  );
  service = await TestService.start({
    api: { gateway: { routes, keys: { FIRST_KEY: 'key-1' } } },
    worker: { SERVICE_TRACE_GRACE_MS: '50' },
  });
  apis = [await service.startApi(), await service.startApi()];
});
afterAll(async () => {
  await service.close();
  for (const server of servers) await server.close();
  removeDir(folder);
});
beforeEach(() => {
  for (const server of servers) {
    server.reached.length = 0;
    server.behave(json(200, JSON.stringify(COMPLETION)));
  }
});

let traces = 0;
const newTrace = (): string => `trc_cache_${++traces}`;
const ask = (api: TestApi, body: Data, headers: Record<string, string | undefined>): Promise<Answer> =>
  call(api, 'POST', '/v1/chat/completions', { body: { model: 'gpt-4o-mini', messages: question, ...body }, headers });

async function spanOf(trace_id: string): Promise<Data & { attributes: Data }> {
  let spans: (Data & { attributes: Data })[] = [];
  await eventually(
    async () => {
      const { json: body } = await call(apis[0], 'GET', `/v1/traces/${trace_id}/tree`);
      spans = ((body?.['data'] as Data | undefined)?.['spans'] ?? []) as typeof spans;
      return spans.length > 0;
    },
    { what: `the trace ${trace_id}` },
  );
  if (spans[0] === undefined) throw new Error('no span');
  return spans[0];
}

test('the same call is answered from the cache by another process, recorded with cost 0 and no tokens', async () => {
  const asked = { seed: 1 };
  const first = await ask(apis[0], asked, { 'X-Service-Cache': '60' });
  expect([first.status, first.headers.get('x-service-cache')]).toEqual([200, 'miss']);
  let trace_id = '';
  await eventually(async () => {
    trace_id = newTrace();
    const answer = await ask(apis[1], asked, { 'X-Service-Cache': '60', 'X-Service-Trace-Id': trace_id });
    expect(answer.text).toBe(first.text);
    return answer.headers.get('x-service-cache') === 'hit';
  });
  expect(await spanOf(trace_id)).toMatchObject({
    cost_usd: 0,
    input_tokens: 0,
    output_tokens: 0,
    response: 'Paris.',
    outcome: 'success',
    attributes: { cached: true, gateway: true },
  });
  const reached = servers[0].reached.length;
  const other = await ask(apis[0], { seed: 2 }, { 'X-Service-Cache': '60' });
  const none = await ask(apis[0], asked, {});
  expect([other, none].map(({ headers }) => headers.get('x-service-cache'))).toEqual(['miss', null]);
  expect(servers[0].reached).toHaveLength(reached + 2);
});

test('a stream is cached as it was sent; a failure is not cached', async () => {
  servers[0].behave(events([...STREAM, ...LAST]));
  const asked = { stream: true };
  const first = await ask(apis[0], asked, { 'X-Service-Cache': '60' });
  await eventually(async () => {
    const again = await ask(apis[0], asked, { 'X-Service-Cache': '60' });
    expect([again.text, again.headers.get('content-type')]).toEqual([first.text, first.headers.get('content-type')]);
    return again.headers.get('x-service-cache') === 'hit';
  });
  servers[0].behave(json(400, '{"error":{"message":"no"}}'));
  for (let i = 0; i < 2; i++) {
    const failed = await ask(apis[0], { seed: 3 }, { 'X-Service-Cache': '60' });
    expect([failed.status, failed.headers.get('x-service-cache')]).toEqual([400, 'miss']);
  }
});

test.each(['0', '2592001', '-1', 'yes', '1.5'])('X-Service-Cache: %s is 422 naming the bounds', async (seconds) => {
  const answer = await ask(apis[0], {}, { 'X-Service-Cache': seconds });
  expect([answer.status, (answer.json?.['error'] as Data)['message']]).toEqual([
    422,
    'X-Service-Cache: must be a whole number of seconds from 1 to 2592000',
  ]);
});

test('a key of capture mode usage stores tokens and cost, and no prompt, response or attribute values', async () => {
  const made = await call(apis[0], 'POST', `/orgs/${ORG}/api-keys`, {
    body: { name: 'quiet', scopes: ['gateway:invoke'], capture: 'usage' },
  });
  const quiet = String(made.json?.['raw_key']);
  const listed = (await call(apis[0], 'GET', `/orgs/${ORG}/api-keys`)).json?.['data'];
  expect(listed).toContainEqual(expect.objectContaining({ name: 'quiet', capture: 'usage' }));
  const trace_id = newTrace();
  const headers = { 'X-Org-Api-Key': quiet, 'X-Service-Trace-Id': trace_id, 'X-Service-Tags': 'prod' };
  await eventually(async () => (await ask(apis[0], { user: 'ann' }, headers)).status === 200);
  const span = await spanOf(trace_id);
  expect(span).toMatchObject({ model: 'gpt-4o-mini', input_tokens: 14, output_tokens: 2, tags: ['prod'] });
  expect(span['cost_usd']).toBeGreaterThan(0);
  expect(JSON.stringify(span)).not.toMatch(/Paris|capital|ann|chatcmpl/);
  expect(span.attributes).toEqual({ span_kind: 'llm', gateway: true, capture: 'usage', http_status: 200 });
  const spent = servers[0].reached.length;
  for (let i = 0; i < 2; i++) await ask(apis[0], {}, { 'X-Org-Api-Key': quiet, 'X-Service-Cache': '60' });
  expect(servers[0].reached).toHaveLength(spent + 2);
});

test("the organization's policy sets the capture mode of all its keys; an estimate is kept and marked", async () => {
  const owner = asUser(await tokenOf({ sub: 'user_local' }));
  const policy = (capture: string | null) =>
    call(apis[0], 'PUT', `/orgs/${ORG}/policy`, { body: { capture }, headers: owner });
  expect((await policy('usage')).json?.['data']).toMatchObject({ capture: 'usage' });
  servers[0].behave(events([...STREAM, 'data: [DONE]\n\n']));
  const trace_id = newTrace();
  await ask(apis[0], { stream: true }, { 'X-Service-Trace-Id': trace_id });
  const span = await spanOf(trace_id);
  expect(span['output_tokens']).toBeGreaterThan(1);
  expect(span.attributes).toMatchObject({ capture: 'usage', tokens_estimated: true });
  expect(JSON.stringify(span)).not.toMatch(/Paris|capital/);
  expect((await policy(null)).json?.['data']).toMatchObject({ capture: 'full' });
});

test("the caller's own credential goes upstream, and the key of the service never does", async () => {
  const client = new OpenAI({
    apiKey: 'sk-of-the-caller',
    baseURL: `${apis[0].url}/v1`,
    maxRetries: 0,
    defaultHeaders: { 'X-Org-Api-Key': KEY },
  });
  const trace_id = newTrace();
  await client.chat.completions.create(
    { model: 'own-model', messages: question },
    { headers: { 'X-Service-Trace-Id': trace_id } },
  );
  servers[0].behave(json(200, JSON.stringify(MESSAGE)));
  const claude = new Anthropic({
    authToken: 'sk-ant-oat-of-the-caller',
    apiKey: null,
    baseURL: `${apis[0].url}/anthropic`,
    maxRetries: 0,
    defaultHeaders: { 'X-Org-Api-Key': KEY },
  });
  await claude.messages.create({ model: 'claude-sonnet-4-5', max_tokens: 1, messages: question });
  const [openai, anthropic] = servers[0].reached;
  expect(openai?.headers.authorization).toBe('Bearer sk-of-the-caller');
  expect(anthropic?.headers.authorization).toBe('Bearer sk-ant-oat-of-the-caller');
  for (const reached of [openai, anthropic]) expect(reached?.rawHeaders.join()).not.toContain(KEY);
  expect(JSON.stringify(await spanOf(trace_id))).not.toContain('sk-of-the-caller');
  const dump = await service.database.run("SELECT count() FROM spans WHERE attributes LIKE '%of-the-caller%'");
  expect(Number(dump)).toBe(0);

  const bare = new OpenAI({ apiKey: KEY, baseURL: `${apis[0].url}/v1`, maxRetries: 0 });
  await expect(bare.chat.completions.create({ model: 'own-model', messages: question })).rejects.toThrow(
    OpenAI.AuthenticationError,
  );
  expect(servers[0].reached).toHaveLength(2);
});

test('weights share the calls between upstreams', async () => {
  for (let i = 0; i < 40; i++) expect((await ask(apis[0], { model: 'shared-a' }, {})).status).toBe(200);
  const [first = 0, second = 0] = servers.map(({ reached }) => reached.length);
  expect(first + second).toBe(40);
  expect(second).toBeGreaterThan(first);
  expect(first).toBeGreaterThan(0);
});

test('an upstream that keeps failing is not asked for some seconds, then tried again', async () => {
  servers[0].behave(json(500, '{"error":{"message":"down"}}'));
  for (let i = 0; i < 20; i++) expect((await ask(apis[0], { model: 'gpt-x' }, {})).status).toBe(200);
  expect(servers[0].reached.length).toBeGreaterThanOrEqual(10);
  expect(servers[0].reached.length).toBeLessThan(20);
  expect(servers[1].reached).toHaveLength(20);
  servers[0].behave(json(200, JSON.stringify(COMPLETION)));
  const before = servers[0].reached.length;
  await eventually(
    async () => {
      await ask(apis[0], { model: 'gpt-x' }, {});
      return servers[0].reached.length > before + 1;
    },
    { what: 'calls of the upstream that works again' },
  );
});
