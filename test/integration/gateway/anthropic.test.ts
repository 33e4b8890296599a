// The gateway under the official @anthropic-ai/sdk package: the answers that the package gets, the
// requests that reach the upstream, and the recorded trace.
import Anthropic from '@anthropic-ai/sdk';
import { expect, test } from 'vitest';
import { events, json } from '../../support/model_server.ts';
import { eventually } from '../../support/wait.ts';
import { call, KEY } from '../api/an_api.ts';
import {
  api,
  aTrace,
  attributesOf,
  client,
  MODEL,
  spanOf,
  spansOf,
  upstream,
  UPSTREAM_KEY,
} from './anthropic_client.ts';
import { MESSAGE, MESSAGE_COST, question, STREAM } from './anthropic_shapes.ts';

test('a message is returned as the upstream sent it and becomes a span with cache and thinking tokens, priced', async () => {
  upstream.behave(
    json(200, JSON.stringify(MESSAGE), {
      'request-id': 'req_011',
      'anthropic-ratelimit-tokens-remaining': '7',
      'x-request-id': 'req_of_a_proxy',
    }),
  );
  const { trace_id, headers } = aTrace({ 'X-Service-Agent-Id': 'agent_support', 'X-Service-Tags': 'prod' });
  const { data, response, request_id } = await client.messages
    .create({ model: MODEL, max_tokens: 100, system: 'One word.', messages: question }, { headers })
    .withResponse();
  expect(data).toEqual(MESSAGE);
  expect(request_id).toBe('req_011');
  expect(response.headers.get('anthropic-ratelimit-tokens-remaining')).toBe('7');
  expect(response.headers.get('x-request-id')).toMatch(/^req_[0-9a-f]{32}$/);
  expect(response.headers.get('x-service-trace-id')).toBe(trace_id);

  const span = await spanOf(trace_id);
  expect(span).toMatchObject({
    span_id: response.headers.get('x-service-span-id'),
    name: MODEL,
    source_format: 'messages',
    outcome: 'success',
    input_tokens: 1310,
    output_tokens: 50,
    response: 'Paris.',
    tags: ['prod'],
  });
  expect(span['cost_usd']).toBeCloseTo(MESSAGE_COST, 12);
  expect(JSON.parse(String(span['prompt']))).toEqual([{ role: 'system', content: 'One word.' }, ...question]);
  expect(attributesOf(span)).toMatchObject({
    http_status: 200,
    agent_id: 'agent_support',
    'gen_ai.response.id': 'msg_01',
    'gen_ai.response.reasoning': 'A simple question.',
    upstream_request_id: 'req_011',
    upstream: new URL(upstream.url).origin,
  });
});

test('a request reaches the upstream byte for byte, with its anthropic-* headers and the key of the operator', async () => {
  upstream.behave(json(200, JSON.stringify(MESSAGE)));
  const raw =
    '{ "model":"claude-sonnet-4-5",  "max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"\\u00e9","cache_control":{"type":"ephemeral"}}]}], "unknown":{"b":9007199254740993,"a":1.0} }';
  const headers = {
    'X-Org-Api-Key': undefined,
    'X-Org-Id': undefined,
    'anthropic-version': '2023-06-01',
    'anthropic-beta': 'context-1m-2025-08-07',
  };
  for (const [path, credential] of [
    ['/v1/messages?beta=true', { 'x-api-key': KEY }],
    ['/anthropic/v1/messages?beta=true', { Authorization: `Bearer ${KEY}` }],
    ['/v1/messages?beta=true', { Authorization: `Bearer ${KEY}`, 'x-api-key': KEY }],
  ] as const) {
    upstream.reached.length = 0;
    const answer = await call(api, 'POST', path, { raw, headers: { ...headers, ...credential } });
    expect([answer.status, answer.text]).toEqual([200, JSON.stringify(MESSAGE)]);
    const [reached] = upstream.reached;
    expect(reached?.path).toBe('/v1/messages?beta=true');
    expect(reached?.body.toString()).toBe(raw);
    expect(reached?.headers).toMatchObject({
      'x-api-key': UPSTREAM_KEY,
      'anthropic-version': '2023-06-01',
      'anthropic-beta': 'context-1m-2025-08-07',
    });
    expect(reached?.rawHeaders.join()).not.toContain(KEY);
  }
});

test('two different credentials are 401 that says so, in the shape of Anthropic', async () => {
  const answer = await call(api, 'POST', '/v1/messages', {
    body: { model: MODEL, max_tokens: 1, messages: question },
    headers: { 'X-Org-Api-Key': undefined, 'x-api-key': KEY, Authorization: 'Bearer another-one' },
  });
  expect(answer.status).toBe(401);
  expect(answer.json).toEqual({
    type: 'error',
    error: { type: 'authentication_error', message: expect.stringContaining('different credentials') as string },
    request_id: answer.headers.get('x-request-id'),
  });
  expect(upstream.reached).toEqual([]);
});

test('a stream arrives unchanged and becomes a span with its thinking, text, tools and last usage', async () => {
  upstream.behave(events(STREAM));
  const { trace_id, headers } = aTrace();
  const stream = client.messages.stream({ model: MODEL, max_tokens: 100, messages: question }, { headers });
  const message = await stream.finalMessage();
  expect(message.content.map(({ type }) => type)).toEqual(['thinking', 'text', 'tool_use']);
  const span = await spanOf(trace_id);
  expect(span).toMatchObject({
    source_format: 'messages',
    outcome: 'success',
    input_tokens: 1310,
    output_tokens: 50,
    response: 'Paris – 巴黎.',
  });
  expect(span['cost_usd']).toBeCloseTo(MESSAGE_COST, 12);
  const attributes = attributesOf(span);
  expect(attributes).toMatchObject({
    stream: true,
    'gen_ai.response.reasoning': 'A simple question.',
    'gen_ai.response.finish_reasons': ['tool_use'],
    tool_calls: [{ type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Paris' } }],
  });
  expect(attributes['time_to_first_token_ms']).toBeGreaterThan(0);
  expect(attributes['tokens_estimated']).toBeUndefined();

  const raw = JSON.stringify({ model: MODEL, max_tokens: 100, messages: question, stream: true });
  upstream.behave(events(STREAM));
  expect((await call(api, 'POST', '/v1/messages', { raw })).text).toBe(STREAM.join(''));
  expect(upstream.reached.at(-1)?.body.toString()).toBe(raw);
});

test('a stream that the caller aborts is recorded with the tokens that were used', async () => {
  upstream.behave(events(STREAM.slice(0, 9), false));
  const { trace_id, headers } = aTrace();
  const stream = client.messages.stream({ model: MODEL, max_tokens: 100, messages: question }, { headers });
  stream.on('error', () => undefined);
  stream.on('text', (_, whole) => {
    if (whole.endsWith('巴黎.')) stream.abort();
  });
  await expect(stream.done()).rejects.toThrow(Anthropic.APIUserAbortError);
  await eventually(() => upstream.reached[0]?.gone === true, { what: 'the end of the call to the upstream' });
  const span = await spanOf(trace_id);
  expect(span).toMatchObject({ outcome: 'error', input_tokens: 1310, response: 'Paris – 巴黎.' });
  expect(span['output_tokens']).toBeGreaterThan(1);
  expect(span['output_tokens']).toBeLessThan(30);
  expect(attributesOf(span)).toMatchObject({ aborted: true, tokens_estimated: true });
});

test('the tokens of a prompt are counted by the upstream and recorded nowhere', async () => {
  upstream.behave(json(200, '{"input_tokens":14}'));
  const { trace_id, headers } = aTrace();
  expect(await client.messages.countTokens({ model: MODEL, messages: question }, { headers })).toEqual({
    input_tokens: 14,
  });
  expect(upstream.reached[0]).toMatchObject({ path: '/v1/messages/count_tokens' });
  upstream.behave(json(200, JSON.stringify(MESSAGE)));
  await client.messages.create({ model: MODEL, max_tokens: 1, messages: question }, { headers });
  await spanOf(trace_id);
});

test('models have the shape of Anthropic where anthropic-version is sent', async () => {
  const model = { type: 'model', id: MODEL, display_name: 'Sonnet', created_at: '2025-09-29T00:00:00Z' };
  upstream.behave(json(200, JSON.stringify({ data: [model], has_more: false, first_id: MODEL, last_id: MODEL })));
  const page = await client.models.list({ limit: 1000 });
  expect(page.data.map(({ id }) => id)).toEqual([MODEL]);
  const plain = new Anthropic({ apiKey: KEY, baseURL: api.url, maxRetries: 0 });
  expect((await plain.models.list()).data).toHaveLength(1);
  upstream.behave(json(200, JSON.stringify(model)));
  expect((await client.models.retrieve(MODEL)).display_name).toBe('Sonnet');
  expect(upstream.reached.map(({ path }) => path)).toEqual([
    '/v1/models?limit=1000',
    '/v1/models',
    `/v1/models/${MODEL}`,
  ]);
  // The list of OpenAI's shape has no upstream here.
  expect((await call(api, 'GET', '/v1/models')).status).toBe(503);
});

test('typed errors and retries of the package work', async () => {
  const overloaded = '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}';
  upstream.behave(json(529, overloaded, { 'retry-after-ms': '1' }), json(200, JSON.stringify(MESSAGE)));
  const retrying = new Anthropic({ apiKey: KEY, baseURL: api.url, maxRetries: 1 });
  const params = { model: MODEL, max_tokens: 1, messages: question };
  expect((await retrying.messages.create(params)).id).toBe('msg_01');
  expect(upstream.reached).toHaveLength(2);
  upstream.behave(json(400, '{"type":"error","error":{"type":"invalid_request_error","message":"no"}}'));
  await expect(client.messages.create(params)).rejects.toThrow(Anthropic.BadRequestError);
  const stranger = new Anthropic({ apiKey: 'sk_svc_unknown', baseURL: `${api.url}/anthropic`, maxRetries: 0 });
  await expect(stranger.messages.create(params)).rejects.toThrow(Anthropic.AuthenticationError);
  await expect(client.messages.batches.list()).rejects.toThrow(Anthropic.NotFoundError);
  const failure = await client.messages
    .create({ ...params, model: MODEL }, { headers: { 'X-Service-Trace-Id': '..' } })
    .then(
      () => null,
      (error: unknown) => error,
    );
  expect(failure).toBeInstanceOf(Anthropic.UnprocessableEntityError);
  expect((failure as InstanceType<typeof Anthropic.APIError>).requestID).toMatch(/^req_[0-9a-f]{32}$/);
});

test('the calls of one turn of Claude Code share a trace, with its session and user', async () => {
  upstream.behave(json(200, JSON.stringify(MESSAGE)));
  const metadata = { user_id: 'user_0a1b_account_11-22_session_33-44' };
  const ask = (messages: Anthropic.MessageParam[], more: object = {}, headers: Record<string, string> = {}) =>
    client.messages.create({ model: MODEL, max_tokens: 1, messages, metadata, ...more }, { headers }).withResponse();
  const first = await ask(question);
  const second = await ask([
    ...question,
    { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'weather', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'Rain.' }] },
  ]);
  const trace_id = first.response.headers.get('x-service-trace-id') ?? '';
  expect(second.response.headers.get('x-service-trace-id')).toBe(trace_id);
  const json_id = { user_id: JSON.stringify({ device_id: 'd', account_uuid: '11-22', session_id: '33-44' }) };
  const next = await ask([...question, { role: 'assistant', content: 'Paris.' }, ...question], { metadata: json_id });
  expect(next.response.headers.get('x-service-trace-id')).not.toBe(trace_id);
  await spansOf(trace_id, 2);
  let sessions: unknown = [];
  await eventually(async () => {
    sessions = (await call(api, 'GET', '/v1/sessions')).json?.['data'];
    return JSON.stringify(sessions).includes('"spans":3');
  });
  expect(sessions).toMatchObject([{ session_id: '33-44', spans: 3 }]);
  expect((await call(api, 'GET', '/v1/users')).json?.['data']).toMatchObject([{ user_id: '11-22', spans: 3 }]);
});

test('a call with a traceparent is a child of the span of its caller, with hexadecimal ids', async () => {
  upstream.behave(json(200, JSON.stringify(MESSAGE)));
  const trace_id = '4bf92f3577b34da6a3ce929d0e0e4736';
  const { response } = await client.messages
    .create(
      { model: MODEL, max_tokens: 1, messages: question },
      { headers: { traceparent: `00-${trace_id}-00f067aa0ba902b7-01` } },
    )
    .withResponse();
  expect(response.headers.get('x-service-trace-id')).toBe(trace_id);
  const span = await spanOf(trace_id);
  expect(span).toMatchObject({
    span_id: expect.stringMatching(/^[0-9a-f]{16}$/) as string,
    parent_span_id: '00f067aa0ba902b7',
  });
});
