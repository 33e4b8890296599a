// The gateway under the official openai package, with a real pipeline behind it: what the package gets, what reaches the upstream, and
// the trace that is left.
import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { events, json, type ModelServer, reset, startModelServer } from '../../support/model_server.ts';
import { eventually } from '../../support/wait.ts';
import { call, KEY, type TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';

type Data = Record<string, unknown>;
const UPSTREAM_KEY = 'sk-upstream-of-the-operator';

let service: TestService;
let upstream: ModelServer;
let api: TestApi;
let client: OpenAI;

beforeAll(async () => {
  upstream = await startModelServer();
  service = await TestService.start({
    api: { llmUrl: upstream.url, llmKey: UPSTREAM_KEY },
    worker: { SERVICE_TRACE_GRACE_MS: '50' },
  });
  api = await service.startApi();
  client = new OpenAI({ apiKey: KEY, baseURL: `${api.url}/v1`, maxRetries: 0 });
});
afterAll(async () => {
  await service.close();
  await upstream.close();
});
beforeEach(() => {
  upstream.reached.length = 0;
});

let traces = 0;
/** Headers of a trace of its own. */
function aTrace(more: Record<string, string> = {}): { trace_id: string; headers: Record<string, string> } {
  const trace_id = `trc_gateway_${String(++traces)}`;
  return { trace_id, headers: { 'X-Service-Trace-Id': trace_id, ...more } };
}

/** The one span of a trace, once it can be read. */
async function spanOf(trace_id: string): Promise<Data> {
  let spans: Data[] = [];
  await eventually(
    async () => {
      const { json: body } = await call(api, 'GET', `/v1/traces/${trace_id}/tree`);
      spans = ((body?.['data'] as Data | undefined)?.['spans'] ?? []) as Data[];
      return spans.length > 0;
    },
    { what: `the trace ${trace_id}` },
  );
  expect(spans).toHaveLength(1);
  return spans[0] ?? {};
}

const attributesOf = (span: Data): Data => span['attributes'] as Data;
const question = [{ role: 'user' as const, content: 'What is the capital of France?' }];

const COMPLETION = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1_700_000_000,
  model: 'gpt-4o-mini-2024-07-18',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'Paris.', refusal: null },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: { prompt_tokens: 14, completion_tokens: 2, total_tokens: 16, prompt_tokens_details: { cached_tokens: 4 } },
  a_field_of_tomorrow: [1.0, { big: '9007199254740993' }],
};

const chunkOf = (choices: unknown[], more: Data = {}): string =>
  `data: ${JSON.stringify({ id: 'chatcmpl-2', object: 'chat.completion.chunk', created: 1, model: 'gpt-4o-mini', choices, ...more })}\n\n`;
const say = (content: string): string => chunkOf([{ index: 0, delta: { content }, finish_reason: null }]);
const USAGE = { prompt_tokens: 1000, completion_tokens: 500, total_tokens: 1500 };
const STREAM = [
  chunkOf([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }]),
  say('Par'),
  say('is – 巴黎.'),
  chunkOf([{ index: 0, delta: {}, finish_reason: 'stop' }]),
];
const LAST = [chunkOf([], { usage: USAGE }), 'data: [DONE]\n\n'];

test('a chat completion comes back as the upstream sent it and is a priced span of its trace', async () => {
  upstream.behave(
    json(200, JSON.stringify(COMPLETION), { 'openai-processing-ms': '12', 'x-request-id': 'req_of_the_upstream' }),
  );
  const { trace_id, headers } = aTrace({
    'X-Service-Parent-Span-Id': 'spn_parent',
    'X-Service-Agent-Id': 'agent_support',
    'X-Service-Session-Id': 'session-7',
    'X-Service-User-Id': 'user-7',
    'X-Service-Tags': 'prod, beta',
  });
  const { data, response } = await client.chat.completions
    .create({ model: 'gpt-4o-mini', messages: question, temperature: 0.2 }, { headers })
    .withResponse();
  expect(data).toEqual(COMPLETION);
  expect(response.headers.get('openai-processing-ms')).toBe('12');
  expect(response.headers.get('x-request-id')).toMatch(/^req_[0-9a-f]{32}$/);
  expect(response.headers.get('x-service-trace-id')).toBe(trace_id);
  const span_id = response.headers.get('x-service-span-id');

  const span = await spanOf(trace_id);
  expect(span).toMatchObject({
    span_id,
    parent_span_id: 'spn_parent',
    name: 'gpt-4o-mini',
    source_format: 'chatcompletion',
    outcome: 'success',
    input_tokens: 14,
    output_tokens: 2,
    response: 'Paris.',
  });
  expect(span['cost_usd']).toBeGreaterThan(0);
  expect(attributesOf(span)).toMatchObject({
    http_status: 200,
    upstream: new URL(upstream.url).origin,
    'gen_ai.request.temperature': 0.2,
  });
  const listed = await call(api, 'GET', '/v1/traces?session_id=session-7');
  expect(listed.json?.['data']).toMatchObject([{ trace_id, agent_id: 'agent_support', tags: ['prod', 'beta'] }]);
});

test('the body reaches the upstream byte for byte, with its key and never with the caller’s', async () => {
  upstream.behave(json(200, JSON.stringify(COMPLETION)));
  const raw =
    '{ "model":"gpt-4o-mini",  "messages":[{"role":"user","content":"\\u00e9"}], "seed":9007199254740993, "unknown":{"b":1,"a":1.0} }';
  const answer = await call(api, 'POST', '/v1/chat/completions?api-version=7', {
    raw,
    headers: {
      'X-Org-Api-Key': undefined,
      'X-Org-Id': undefined,
      Authorization: `Bearer ${KEY}`,
      'X-Copy': `of ${KEY}`,
      'OpenAI-Beta': 'a=b',
    },
  });
  expect(answer.status).toBe(200);
  expect(answer.text).toBe(JSON.stringify(COMPLETION));
  const [reached] = upstream.reached;
  expect(reached?.path).toBe('/v1/chat/completions?api-version=7');
  expect(reached?.body.toString()).toBe(raw);
  expect(reached?.headers).toMatchObject({ authorization: `Bearer ${UPSTREAM_KEY}`, 'openai-beta': 'a=b' });
  expect(reached?.rawHeaders.join()).not.toContain(KEY);
});

test('a stream arrives piece by piece; its usage is asked for, counted, and kept from who did not ask', async () => {
  upstream.behave(events([...STREAM, ...LAST]));
  const { trace_id, headers } = aTrace();
  const stream = await client.chat.completions.create(
    { model: 'gpt-4o-mini', messages: question, stream: true },
    { headers },
  );
  let text = '';
  for await (const chunk of stream) {
    expect(chunk.usage).toBeUndefined();
    text += chunk.choices[0]?.delta.content ?? '';
  }
  expect(text).toBe('Paris – 巴黎.');
  const sent = upstream.reached[0]?.body.toString() ?? '';
  expect(JSON.parse(sent)).toMatchObject({ stream: true, stream_options: { include_usage: true } });

  const span = await spanOf(trace_id);
  expect(span).toMatchObject({ outcome: 'success', input_tokens: 1000, output_tokens: 500, response: 'Paris – 巴黎.' });
  const attributes = attributesOf(span);
  expect(attributes['time_to_first_token_ms']).toBeGreaterThan(0);
  expect(attributes['gen_ai.response.finish_reasons']).toEqual(['stop']);
  expect(attributes['tokens_estimated']).toBeUndefined();
});

test('who asked for the usage of a stream gets every byte of it', async () => {
  upstream.behave(events([...STREAM, ...LAST]));
  const raw = JSON.stringify({
    model: 'gpt-4o-mini',
    messages: question,
    stream: true,
    stream_options: { include_usage: true },
  });
  const answer = await call(api, 'POST', '/v1/chat/completions', { raw });
  expect(answer.text).toBe([...STREAM, ...LAST].join(''));
  expect(upstream.reached[0]?.body.toString()).toBe(raw);
  const hidden = await call(api, 'POST', '/v1/chat/completions', {
    raw: JSON.stringify({ model: 'gpt-4o-mini', messages: question, stream: true }),
  });
  expect(hidden.text).toBe([...STREAM, LAST[1]].join(''));
});

test('a stream of an upstream that does not say its usage is estimated and marked', async () => {
  upstream.behave(events([...STREAM, 'data: [DONE]\n\n']));
  const { trace_id, headers } = aTrace();
  await call(api, 'POST', '/v1/chat/completions', {
    body: { model: 'gpt-4o-mini', messages: question, stream: true },
    headers,
  });
  const span = await spanOf(trace_id);
  expect(attributesOf(span)['tokens_estimated']).toBe(true);
  expect(span['input_tokens']).toBeGreaterThan(5);
  expect(span['output_tokens']).toBeGreaterThan(1);
});

test('streamed tool calls are put together', async () => {
  const tool = (delta: Data) => chunkOf([{ index: 0, delta: { tool_calls: [delta] }, finish_reason: null }]);
  upstream.behave(
    events([
      chunkOf([{ index: 0, delta: { role: 'assistant', content: null }, finish_reason: null }]),
      tool({ index: 0, id: 'call_1', type: 'function', function: { name: 'weather', arguments: '' } }),
      tool({ index: 0, function: { arguments: '{"city":' } }),
      tool({ index: 1, id: 'call_2', type: 'function', function: { name: 'time', arguments: '{}' } }),
      tool({ index: 0, function: { arguments: '"Paris"}' } }),
      chunkOf([{ index: 0, delta: {}, finish_reason: 'tool_calls' }]),
      ...LAST,
    ]),
  );
  const { trace_id, headers } = aTrace();
  const runner = client.chat.completions.stream({ model: 'gpt-4o-mini', messages: question }, { headers });
  const message = await runner.finalMessage();
  expect(message.tool_calls?.map((one) => ('function' in one ? one.function.arguments : ''))).toEqual([
    '{"city":"Paris"}',
    '{}',
  ]);
  expect(attributesOf(await spanOf(trace_id))['tool_calls']).toEqual([
    { type: 'function', id: 'call_1', function: { name: 'weather', arguments: '{"city":"Paris"}' } },
    { type: 'function', id: 'call_2', function: { name: 'time', arguments: '{}' } },
  ]);
});

test('embeddings pass as they are; their vectors are not stored', async () => {
  const vector = Buffer.from(new Float32Array([0.5, -1, 2]).buffer).toString('base64');
  upstream.behave(
    json(
      200,
      JSON.stringify({
        object: 'list',
        data: [{ object: 'embedding', index: 0, embedding: vector }],
        model: 'text-embedding-3-small',
        usage: { prompt_tokens: 9, total_tokens: 9 },
      }),
    ),
  );
  const { trace_id, headers } = aTrace();
  const answer = await client.embeddings.create(
    { model: 'text-embedding-3-small', input: ['Paris', 'Rome'] },
    { headers },
  );
  expect(answer.data[0]?.embedding).toEqual([0.5, -1, 2]);
  const span = await spanOf(trace_id);
  expect(span).toMatchObject({
    name: 'text-embedding-3-small',
    source_format: 'gateway',
    input_tokens: 9,
    output_tokens: 0,
    prompt: 'Paris\nRome',
  });
  expect(span['cost_usd']).toBeGreaterThan(0);
  expect(JSON.stringify(span)).not.toContain(vector);
});

const RESPONSE = {
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'gpt-4o-mini',
  output: [
    {
      type: 'message',
      id: 'msg_1',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'Paris.', annotations: [] }],
    },
  ],
  usage: { input_tokens: 30, output_tokens: 3, total_tokens: 33, input_tokens_details: { cached_tokens: 10 } },
};

test('a response, whole and as a stream, is a span of the format gateway', async () => {
  upstream.behave(
    json(200, JSON.stringify(RESPONSE)),
    events([
      `event: response.created\ndata: ${JSON.stringify({ type: 'response.created', response: { ...RESPONSE, output: [], usage: null } })}\n\n`,
      `event: response.output_text.delta\ndata: ${JSON.stringify({ type: 'response.output_text.delta', delta: 'Paris.', output_index: 0 })}\n\n`,
      `event: response.completed\ndata: ${JSON.stringify({ type: 'response.completed', response: RESPONSE })}\n\n`,
    ]),
  );
  const whole = aTrace();
  const answer = await client.responses.create(
    { model: 'gpt-4o-mini', instructions: 'One word.', input: 'The capital of France?' },
    { headers: whole.headers },
  );
  expect(answer.output_text).toBe('Paris.');
  const streamed = aTrace();
  const stream = await client.responses.create(
    { model: 'gpt-4o-mini', input: 'The capital of France?', stream: true },
    { headers: streamed.headers },
  );
  const types: string[] = [];
  for await (const event of stream) types.push(event.type);
  expect(types).toEqual(['response.created', 'response.output_text.delta', 'response.completed']);
  for (const { trace_id } of [whole, streamed]) {
    const span = await spanOf(trace_id);
    expect(span).toMatchObject({
      source_format: 'gateway',
      input_tokens: 30,
      output_tokens: 3,
      response: 'Paris.',
      outcome: 'success',
    });
    expect(span['prompt']).toContain('The capital of France?');
  }
  expect(attributesOf(await spanOf(streamed.trace_id))['time_to_first_token_ms']).toBeGreaterThan(0);
});

test('the models are the upstream’s', async () => {
  upstream.behave(
    json(
      200,
      JSON.stringify({
        object: 'list',
        data: [{ id: 'gpt-4o-mini', object: 'model', created: 1, owned_by: 'openai' }],
      }),
    ),
  );
  expect((await client.models.list()).data.map(({ id }) => id)).toEqual(['gpt-4o-mini']);
  upstream.behave(json(200, JSON.stringify({ id: 'org/model', object: 'model' })));
  expect((await client.models.retrieve('org/model')).id).toBe('org/model');
  expect(upstream.reached.map(({ method, path }) => `${method} ${path}`)).toEqual([
    'GET /v1/models',
    'GET /v1/models/org%2Fmodel',
  ]);
});

test('a model whose name leads to another path of the upstream is 422, and nothing reaches the upstream', async () => {
  for (const name of ['..%2f..%2fadmin', '%2e%2e%2fresponses', 'a%252f..%252fb', 'a%3fb=1']) {
    const answer = await call(api, 'GET', `/v1/models/${name}`);
    expect([answer.status, answer.json?.['error']]).toMatchObject([422, { code: 'invalid_request', param: 'model' }]);
  }
  expect(upstream.reached).toEqual([]);
});

test('neither the cookies of a caller nor those of an upstream pass, and a redirect is neither followed nor passed on', async () => {
  const elsewhere = await startModelServer();
  upstream.behave(
    json(302, '', {
      location: `${elsewhere.url}/chat/completions`,
      'set-cookie': 'a=b',
      'access-control-allow-origin': '*',
    }),
  );
  const { trace_id, headers } = aTrace({ Cookie: 'theirs=1', 'X-Api-Key': 'sk-theirs', 'X-Unknown': '1' });
  const answer = await call(api, 'POST', '/v1/chat/completions', {
    body: { model: 'gpt-4o-mini', messages: question },
    headers,
  });
  expect(answer.status).toBe(302);
  for (const name of ['location', 'set-cookie', 'access-control-allow-origin'])
    expect(answer.headers.get(name)).toBeNull();
  expect(Object.keys(upstream.reached[0]?.headers ?? {})).not.toEqual(
    expect.arrayContaining([expect.stringMatching(/^(cookie|x-api-key|x-unknown)$/)]),
  );
  expect(elsewhere.reached).toEqual([]);
  await elsewhere.close();
  const span = await spanOf(trace_id);
  expect(span).toMatchObject({ outcome: 'error', input_tokens: 0 });
  expect(attributesOf(span)).toMatchObject({
    http_status: 302,
    error_message: 'The upstream answered with status 302.',
  });
});

test('a page of HTML and an answer that cannot be parsed are recorded as errors', async () => {
  upstream.behave(json(200, '<html>Sign in</html>', { 'content-type': 'text/html' }), json(200, '{"choices":'));
  for (const message of [/page of HTML/, /other than a JSON object/]) {
    const { trace_id, headers } = aTrace();
    const answer = await call(api, 'POST', '/v1/chat/completions', {
      body: { model: 'gpt-4o-mini', messages: question },
      headers,
    });
    expect(answer.status).toBe(200);
    const span = await spanOf(trace_id);
    expect(span['outcome']).toBe('error');
    expect(attributesOf(span)['error_message']).toMatch(message);
  }
});

test('an error of the upstream comes back unchanged and is recorded', async () => {
  const text =
    '{"error": {"message": "max_tokens is too large", "type": "invalid_request_error", "param": "max_tokens", "code": "x"}}';
  upstream.behave(json(400, text, { 'x-ratelimit-remaining-tokens': '7' }));
  const { trace_id, headers } = aTrace();
  const answer = await call(api, 'POST', '/v1/chat/completions', {
    body: { model: 'gpt-4o-mini', messages: 'what?' },
    headers,
  });
  expect([answer.status, answer.text, answer.headers.get('x-ratelimit-remaining-tokens')]).toEqual([400, text, '7']);
  const span = await spanOf(trace_id);
  expect(span).toMatchObject({ outcome: 'error', input_tokens: 0, output_tokens: 0 });
  expect(attributesOf(span)).toMatchObject({ http_status: 400, error_message: 'max_tokens is too large' });
});

test('a caller that goes away in the middle of a stream is recorded with what it got, and the upstream hears of it', async () => {
  upstream.behave(events(STREAM.slice(0, 3), false));
  const { trace_id, headers } = aTrace();
  const stream = await client.chat.completions.create(
    { model: 'gpt-4o-mini', messages: question, stream: true },
    { headers },
  );
  let text = '';
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta.content ?? '';
    if (text === 'Paris – 巴黎.') break;
  }
  await eventually(() => upstream.reached[0]?.gone === true, { what: 'the end of the call to the upstream' });
  const span = await spanOf(trace_id);
  expect(span).toMatchObject({ outcome: 'error', response: 'Paris – 巴黎.' });
  expect(attributesOf(span)).toMatchObject({ aborted: true, tokens_estimated: true });
  expect(span['output_tokens']).toBeGreaterThan(0);
});

test('an upstream that breaks off before its answer is 502, in the middle of it a broken stream; neither is asked again', async () => {
  upstream.behave(reset);
  const dropped = aTrace();
  const error = await client.chat.completions
    .create({ model: 'gpt-4o-mini', messages: question }, { headers: dropped.headers })
    .catch((e: unknown) => e);
  expect(error).toMatchObject({ status: 502, code: 'upstream_unavailable', type: 'server_error' });
  expect(upstream.reached).toHaveLength(1);
  expect(await spanOf(dropped.trace_id)).toMatchObject({ outcome: 'error', input_tokens: 0 });

  upstream.behave((res, reached) => {
    events(STREAM.slice(0, 2), false)(res, reached);
    setTimeout(() => res.destroy(), 50);
  });
  const broken = aTrace();
  const stream = await client.chat.completions.create(
    { model: 'gpt-4o-mini', messages: question, stream: true },
    { headers: broken.headers },
  );
  let text = '';
  const read = async () => {
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
  };
  await expect(read()).rejects.toThrow();
  expect(text).toBe('Par');
  expect(upstream.reached).toHaveLength(2);
  const span = await spanOf(broken.trace_id);
  expect(span).toMatchObject({ outcome: 'error', response: 'Par' });
  expect(attributesOf(span)['error_message']).toMatch(/broke off/);
});

test.each([
  [
    'no key',
    { 'X-Org-Api-Key': undefined, 'X-Org-Id': undefined },
    '{}',
    401,
    'unauthenticated',
    'authentication_error',
  ],
  ['another org', { 'X-Org-Id': 'org_other' }, '{}', 403, 'cross_org_access', 'permission_error'],
  ['no JSON', {}, '{', 422, 'invalid_request', 'invalid_request_error'],
  ['no object', {}, '[1]', 422, 'invalid_request', 'invalid_request_error'],
  ['a bad trace id', { 'X-Service-Trace-Id': 'a b' }, '{}', 422, 'invalid_request', 'invalid_request_error'],
  ['another type', { 'Content-Type': 'text/plain' }, '{}', 415, 'unsupported_media_type', 'invalid_request_error'],
])(
  'what the gateway refuses itself (%s) has the shape that clients read',
  async (_, headers, raw, status, code, type) => {
    const answer = await call(api, 'POST', '/v1/chat/completions', { raw, headers });
    expect(answer.status).toBe(status);
    expect(answer.json).toEqual({
      error: { message: expect.any(String) as string, type, code, param: expect.toSatisfy(() => true) as unknown },
    });
    expect(answer.headers.get('x-request-id')).toMatch(/^req_/);
    expect(upstream.reached).toHaveLength(0);
  },
);
