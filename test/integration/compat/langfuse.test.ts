// The unmodified clients of Langfuse against a service: only their address and key are set. Trees,
// kinds, models, tokens, cost, sessions and prompts arrive, and scores may come before their trace.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { say, startUpstream, type TestUpstream } from '../../support/upstream.ts';
import { eventually } from '../../support/wait.ts';
import { call, KEY, ORG, type TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';
import { type Data, named, runApp, traceOf, treeOf } from './an_app.ts';

let service: TestService;
let upstream: TestUpstream;
let api: TestApi;

beforeAll(async () => {
  upstream = await startUpstream();
  service = await TestService.start({ worker: { SERVICE_TRACE_GRACE_MS: '50' } });
  api = await service.startApi();
}, 120_000);
afterAll(async () => {
  await service.close();
  await upstream.close();
});

const basic = (user: string, password: string) => ({
  authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
  'X-Org-Api-Key': undefined,
  'X-Org-Id': undefined,
});
const attributesOf = (span: Data): Data => span['attributes'] as Data;
const scoresOf = async (trace_id: string): Promise<Data[]> => {
  const { json } = await call(api, 'GET', `/v1/scores?trace_id=${trace_id}`);
  return (json?.['data'] as Data[] | undefined) ?? [];
};

describe('the tracing of Langfuse', () => {
  test('arrives as a tree with kinds, model, tokens, cost, prompt, error, metadata, session, user and tags', async () => {
    const { trace_id } = await runApp('langfuseTracing', api);
    const tree = await treeOf(api, trace_id, 5);
    expect(tree.map(({ name }) => name).sort()).toEqual(['answer-question', 'ask-model', 'check', 'look-up', 'priced']);
    const root = named(tree, 'answer-question');
    expect(root).toMatchObject({
      parent_span_id: null,
      prompt: JSON.stringify({ question: 'Where is it?' }),
      response: 'On the shelf',
    });
    const asked = named(tree, 'ask-model');
    expect(asked).toMatchObject({
      parent_span_id: root['span_id'],
      model: 'gpt-4o-mini',
      input_tokens: 100,
      output_tokens: 20,
      prompt: JSON.stringify([{ role: 'user', content: 'Where is it?' }]),
      response: 'On the shelf',
      attributes: { span_kind: 'llm', prompt_name: 'support', prompt_version: '3' },
    });
    expect(attributesOf(asked)['metadata']).toMatchObject({ attempt: '1', region: 'eu' });
    // 60 uncached and 40 cached tokens in, 20 out, at 0.15, 0.075 and 0.6 USD for a million.
    expect(asked['cost_usd']).toBeCloseTo((60 * 0.15 + 40 * 0.075 + 20 * 0.6) / 1e6, 12);
    expect(named(tree, 'look-up')).toMatchObject({ attributes: { span_kind: 'tool' }, prompt: '{"sku":7}' });
    expect(named(tree, 'check')).toMatchObject({ outcome: 'error', attributes: { error_message: 'no stock' } });
    expect(named(tree, 'priced')).toMatchObject({ model: 'own-model', cost_usd: 0.25 });
    expect(await traceOf(api, 'session_id=session-1')).toMatchObject({
      trace_id,
      user_id: 'user-1',
      tags: ['beta'],
      outcome: 'error',
      root_span_name: 'answer-question',
    });
  });

  test('arrives from the wrapper of the OpenAI client, each call once', async () => {
    const { trace_id } = await runApp('langfuseOpenai', api, { UPSTREAM_URL: upstream.url });
    const tree = await treeOf(api, trace_id, 2);
    const calls = tree.filter((span) => attributesOf(span)['span_kind'] === 'llm');
    expect(calls).toHaveLength(1);
    expect(calls[0]).toMatchObject({ model: 'gpt-4o-mini' });
    expect(Number(calls[0]?.['input_tokens'])).toBeGreaterThan(0);
  });

  test('arrives from the callbacks of LangChain, with session and user', async () => {
    const { trace_id } = await runApp('langfuseLangchain', api, { UPSTREAM_URL: upstream.url });
    const tree = await treeOf(api, trace_id, 3);
    const calls = tree.filter((span) => attributesOf(span)['span_kind'] === 'llm');
    expect(calls).toHaveLength(1);
    expect(calls[0]).toMatchObject({ model: 'gpt-4o-mini' });
    expect(await traceOf(api, 'session_id=session-2')).toMatchObject({ trace_id, user_id: 'user-2', tags: ['chain'] });
  });
});

test('the integration of Langfuse for the Vercel AI SDK arrives with one counted call, session and user', async () => {
  upstream.behave(say('Good day'));
  const { trace_id } = await runApp('langfuseVercelAiSdk', api, { UPSTREAM_URL: upstream.url });
  const tree = await treeOf(api, trace_id, 3);
  const calls = tree.filter((span) => attributesOf(span)['span_kind'] === 'llm');
  expect(calls).toMatchObject([{ model: 'gpt-4o-mini', input_tokens: 100, output_tokens: 20, response: 'Good day' }]);
  expect(String(calls[0]?.['prompt'])).toContain('Hello');
  // 100 tokens in and 20 out, at 0.15 and 0.6 USD for a million; the spans above the call count nothing.
  expect(tree.reduce((sum, span) => sum + Number(span['cost_usd']), 0)).toBeCloseTo((100 * 0.15 + 20 * 0.6) / 1e6, 12);
  const whose = await service.database.run(
    `SELECT session_id, user_id, count() FROM spans WHERE trace_id = '${String(trace_id)}' GROUP BY 1, 2`,
  );
  expect(whose.trim()).toBe(`session-5\tuser-5\t${tree.length}`);
  expect(named(tree, 'ai-sdk')['parent_span_id']).toBeNull();
});

describe('the client of Langfuse', () => {
  test('creates and reads prompts by label with a fallback, reads datasets, and scores a trace before it arrives', async () => {
    const items = [{ input: { country: 'France' }, expected: { capital: 'Paris' } }];
    expect((await call(api, 'POST', '/v1/datasets', { body: { name: 'capitals', version: '1', items } })).status).toBe(
      201,
    );
    const trace_id = 'ab'.repeat(16);
    const result = await runApp('langfuseClient', api, { TRACE_ID: trace_id });
    expect(result).toMatchObject({
      created: ['greeting', 1, 'chat'],
      production: [1, [{ role: 'system', content: 'Greet Ada' }], { temperature: 0.1 }],
      staging: [2, 'Hi Ada'],
      newest: 2,
      moved: 2,
      fallback: 'Hello Ada',
      project: ORG,
      health: 'OK',
      names: [{ name: 'greeting', versions: [2, 1] }],
      items: [{ input: { country: 'France' }, expectedOutput: { capital: 'Paris' } }],
      refused: { status: 501, body: { code: 'not_implemented' } },
    });
    expect(await scoresOf(trace_id)).toEqual([]);
    const event = { name: 'late', outcome: 'success', duration_ms: 1, trace_id };
    expect((await call(api, 'POST', `/orgs/${ORG}/ingest/custom`, { body: { events: [event] } })).status).toBe(200);
    await eventually(async () => (await scoresOf(trace_id)).length === 2);
    expect(await scoresOf(trace_id)).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ name: 'helpful', value: true, comment: 'yes', source: 'user' }),
        expect.objectContaining({ name: 'stars', value: 4.5 }),
      ]),
    );
  });
});

test('a list of scores, as the Python client 5 sends it, is stored, and an item that is no score fails alone', async () => {
  const trace_id = 'ac'.repeat(16);
  const event = { name: 'listed', outcome: 'success', duration_ms: 1, trace_id };
  expect((await call(api, 'POST', `/orgs/${ORG}/ingest/custom`, { body: { events: [event] } })).status).toBe(200);
  const scores = ['a', 'b'].map((name) => ({ id: `list-${name}`, traceId: trace_id, name, value: 0.5 }));
  const sent = (body: unknown[]) => call(api, 'POST', '/api/public/scores', { body });
  const whole = await sent(scores);
  expect([whole.status, whole.json]).toEqual([202, { message: 'Accepted' }]);
  const partly = await sent([...scores, { name: 'c', value: 1 }]);
  expect([partly.status, partly.json]).toEqual([
    207,
    { accepted: 2, rejected: 1, errors: [{ message: '[2].traceId: must be a trace id' }] },
  ]);
  expect((await sent([])).status).toBe(422);
  await eventually(async () => (await scoresOf(trace_id)).length === 2);
  expect((await scoresOf(trace_id)).map(({ name }) => name).sort()).toEqual(['a', 'b']);
});

describe('the older client of Langfuse', () => {
  test('makes one span of each observation that it creates and updates 20 seconds later', async () => {
    const { trace_id } = await runApp('langfuseLegacy', api, { PAUSE_MS: '20000' });
    const tree = await treeOf(api, trace_id, 4);
    expect(tree.map(({ name }) => name).sort()).toEqual(['call', 'clicked', 'legacy', 'retrieve']);
    const [root, span, generation] = ['legacy', 'retrieve', 'call'].map((name) => named(tree, name));
    expect(root).toMatchObject({ parent_span_id: null, prompt: 'Q', response: 'A' });
    expect(span).toMatchObject({ parent_span_id: root?.['span_id'], response: '{"found":true}' });
    expect(generation).toMatchObject({
      parent_span_id: span?.['span_id'],
      model: 'gpt-4o-mini',
      input_tokens: 100,
      output_tokens: 20,
      response: 'A',
    });
    expect(await traceOf(api, 'session_id=session-3')).toMatchObject({ trace_id, user_id: 'user-3', tags: ['old'] });
    await eventually(async () => (await scoresOf(String(trace_id))).length === 1);
  }, 120_000);
});

describe('the Basic scheme', () => {
  test.each([
    ['a wrong secret', basic('anything', 'sk_svc_wrong'), 401],
    ['no secret', basic('anything', ''), 401],
    ['no credential', { 'X-Org-Api-Key': undefined }, 401],
    ['the API key as secret', basic('anything', KEY), 200],
  ])('with %s is answered as it should be', async (_, headers, status) => {
    expect((await call(api, 'GET', '/api/public/projects', { headers })).status).toBe(status);
  });

  test('is not accepted on other paths', async () => {
    expect((await call(api, 'GET', '/v1/prompts', { headers: basic('anything', KEY) })).status).toBe(401);
  });
});

test.each([
  ['GET', '/api/public/traces', 'GET /v1/traces'],
  ['GET', '/api/public/sessions/x', 'GET /v1/sessions'],
  ['GET', '/api/public/v2/metrics', 'POST /v1/analytics/query'],
  ['GET', '/langsmith/sessions', 'GET /v1/sessions'],
  ['POST', '/langsmith/runs/query', 'GET /v1/traces'],
])('%s %s is answered 501 and names %s', async (method, path, instead) => {
  const { status, json } = await call(api, method, path, method === 'POST' ? { body: {} } : {});
  expect([status, json?.['code']]).toEqual([501, 'not_implemented']);
  expect(json?.['detail']).toContain(instead);
});
