// The choice of the upstream: the routing table, its fallbacks and timeouts, and the requests that
// the gateway answers without an upstream.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { events, json, type ModelServer, reset, silence, startModelServer } from '../../support/model_server.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { startWorker, type TestWorker } from '../../support/pipeline.ts';
import { removeDir, tempDir } from '../../support/temp.ts';
import { eventually } from '../../support/wait.ts';
import { type Answer, call, startTestApi, type TestApi } from '../api/an_api.ts';

type Data = Record<string, unknown>;

let folder: string;
let database: TestDatabase;
let nats: TestNats;
let servers: [first: ModelServer, second: ModelServer];
let routed: TestApi;
let bare: TestApi;
let worker: TestWorker;

beforeAll(async () => {
  folder = tempDir('gateway');
  [database, nats, ...servers] = await Promise.all([
    createTestDatabase(),
    startTestNats(),
    startModelServer(),
    startModelServer(),
  ]);
  const routes = path.join(folder, 'routes.json');
  const [first, second] = servers;
  writeFileSync(
    routes,
    JSON.stringify([
      {
        model: 'gpt-*',
        upstreams: [
          { base_url: first.url, api_key_env: 'FIRST_KEY', timeout_ms: 700 },
          { base_url: second.url, api_key_env: 'SECOND_KEY', timeout_ms: 700, model: 'gpt-4o-mini' },
        ],
      },
      { model: 'local', upstreams: [{ base_url: second.url }] },
    ]),
  );
  const clickhouseUrl = database.url;
  routed = await startTestApi({
    natsUrl: nats.url,
    clickhouseUrl,
    gateway: { routes, keys: { FIRST_KEY: 'key-1', SECOND_KEY: 'key-2' } },
  });
  bare = await startTestApi({ natsUrl: nats.url, clickhouseUrl });
  worker = startWorker({ natsUrl: nats.url, clickhouseUrl, more: { SERVICE_TRACE_GRACE_MS: '50' } });
  await worker.ready;
});
afterAll(async () => {
  worker.kill('SIGKILL');
  await worker.exited;
  await routed.close();
  await bare.close();
  for (const server of servers) await server.close();
  await nats.remove();
  await database.drop();
  removeDir(folder);
});
beforeEach(() => {
  for (const server of servers) {
    server.reached.length = 0;
    server.behave(completion);
  }
});

const completion = json(
  200,
  JSON.stringify({
    id: 'c1',
    model: 'gpt-4o-mini',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Paris.' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 },
  }),
);

let traces = 0;
const ask = (api: TestApi, more: Data = {}, trace_id = `trc_up_${++traces}`): Promise<Answer> =>
  call(api, 'POST', '/v1/chat/completions', {
    body: { model: 'gpt-4o', messages: [{ role: 'user', content: 'The capital of France?' }], ...more },
    headers: { 'X-Service-Trace-Id': trace_id },
  });

async function attributesOf(answer: Answer): Promise<Data> {
  const trace_id = answer.headers.get('x-service-trace-id') ?? '';
  let spans: Data[] = [];
  await eventually(
    async () => {
      const { json: body } = await call(bare, 'GET', `/v1/traces/${trace_id}/tree`);
      spans = ((body?.['data'] as Data | undefined)?.['spans'] ?? []) as Data[];
      return spans.length > 0;
    },
    { what: `the trace ${trace_id}` },
  );
  expect(spans).toHaveLength(1);
  return { ...(spans[0]?.['attributes'] as Data), name: spans[0]?.['name'], outcome: spans[0]?.['outcome'] };
}

const reachedCounts = () => servers.map(({ reached }) => reached.length);

test('the first upstream of the first matching route is called, with its own key', async () => {
  expect((await ask(routed)).status).toBe(200);
  expect((await ask(routed, { model: 'local' })).status).toBe(200);
  const [[first], [second]] = [servers[0].reached, servers[1].reached];
  expect(first?.headers.authorization).toBe('Bearer key-1');
  expect(second?.headers.authorization).toBeUndefined();
  expect(reachedCounts()).toEqual([1, 1]);
});

test.each([
  ['429', json(429, '{"error":{}}')],
  ['408', json(408, '{"error":{}}')],
  ['503', json(503, '{"error":{}}')],
  ['a broken connection', reset],
  ['silence', silence],
])('after %s the next upstream is called, for its own model', async (_, behaviour) => {
  servers[0].behave(behaviour);
  const answer = await ask(routed, { seed: 1 });
  expect(answer.status).toBe(200);
  expect(reachedCounts()).toEqual([1, 1]);
  const second = servers[1].reached[0];
  expect(second?.headers.authorization).toBe('Bearer key-2');
  expect(JSON.parse(second?.body.toString() ?? '')).toMatchObject({ model: 'gpt-4o-mini', seed: 1 });
  const attributes = await attributesOf(answer);
  expect(attributes).toMatchObject({
    outcome: 'success',
    name: 'gpt-4o-mini',
    requested_model: 'gpt-4o',
    upstream: new URL(servers[1].url).origin,
  });
  expect(attributes['fallback_from']).toHaveLength(1);
});

test('any other answer is final: after a 400 no other upstream is called', async () => {
  servers[0].behave(json(400, '{"error":{"message":"no"}}'));
  const answer = await ask(routed);
  expect([answer.status, answer.text, ...reachedCounts()]).toEqual([400, '{"error":{"message":"no"}}', 1, 0]);
});

test("the last upstream's answer is passed on, whatever it is", async () => {
  servers[0].behave(reset);
  servers[1].behave(json(503, '{"error":{"message":"overloaded"}}', { 'retry-after': '3' }));
  const answer = await ask(routed);
  expect([answer.status, answer.text, answer.headers.get('retry-after')]).toEqual([
    503,
    '{"error":{"message":"overloaded"}}',
    '3',
  ]);
});

test('silence of all upstreams is 502, recorded as a timeout', async () => {
  for (const server of servers) server.behave(silence);
  const answer = await ask(routed);
  expect([answer.status, (answer.json?.['error'] as Data)['code']]).toEqual([502, 'upstream_unavailable']);
  expect(await attributesOf(answer)).toMatchObject({ outcome: 'timeout' });
});

test('after the first byte of a stream no other upstream is called: the stream breaks off', async () => {
  servers[0].behave(events(['data: {"choices":[{"index":0,"delta":{"content":"Par"}}]}\n\n'], false));
  const trace_id = 'trc_up_silent';
  await expect(ask(routed, { stream: true }, trace_id)).rejects.toThrow();
  expect(reachedCounts()).toEqual([1, 0]);
  const headers = new Headers({ 'x-service-trace-id': trace_id });
  expect(await attributesOf({ status: 0, headers, text: '', json: null })).toMatchObject({ outcome: 'timeout' });
});

test("a long answer passes whole, at its reader's pace", async () => {
  const text = JSON.stringify({ choices: [], filler: 'x'.repeat(20_000_000) });
  servers[0].behave(json(200, text));
  const answer = await ask(routed);
  expect(answer.text).toBe(text);
  expect(await attributesOf(answer)).toMatchObject({ outcome: 'success', answer_truncated: true });
});

test('a model without an upstream is 503 upstream_not_configured', async () => {
  const error = {
    message: expect.stringContaining('SERVICE_LLM_BASE_URL') as string,
    type: 'server_error',
    code: 'upstream_not_configured',
    param: null,
  };
  const answers = [await ask(bare), await ask(routed, { model: 'claude' }), await call(bare, 'GET', '/v1/models')];
  for (const answer of answers) {
    expect(answer.status).toBe(503);
    expect(answer.json).toEqual({ error });
  }
  expect(reachedCounts()).toEqual([0, 0]);
});

test('another method is 405 with Allow', async () => {
  const answer = await call(bare, 'GET', '/v1/chat/completions');
  expect([answer.status, answer.headers.get('allow'), (answer.json?.['error'] as Data)['code']]).toEqual([
    405,
    'POST',
    'method_not_allowed',
  ]);
});
