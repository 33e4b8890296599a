// The gateway under the official openai package: the answers that the package gets, the requests
// that reach the upstream, and the recorded trace.
import { expect, test } from 'vitest';
import { events, json } from '../../support/model_server.ts';
import { eventually } from '../../support/wait.ts';
import { call, KEY } from '../api/an_api.ts';
import { type Data, UPSTREAM_KEY, upstream, api, client, aTrace, spanOf, attributesOf } from './openai_client.ts';
import { question, COMPLETION, chunkOf, STREAM, LAST } from './openai_shapes.ts';

test('a chat completion is returned as the upstream sent it and becomes a priced span of its trace', async () => {
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
  let listed: unknown = [];
  // The row of a trace lands after its spans.
  await eventually(async () => {
    listed = (await call(api, 'GET', '/v1/traces?session_id=session-7')).json?.['data'];
    return Array.isArray(listed) && listed.length > 0;
  });
  expect(listed).toMatchObject([{ trace_id, agent_id: 'agent_support', tags: ['prod', 'beta'] }]);
});

test('a request body reaches the upstream byte for byte, with the key of the operator and never the caller’s', async () => {
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

test('a stream arrives piece by piece, and its usage is requested, counted, and hidden from a caller who did not ask for it', async () => {
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

test('a caller who asked for the usage of a stream gets every byte of it', async () => {
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

test('the usage of a stream is estimated and marked when the upstream does not report it', async () => {
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

test('the parts of streamed tool calls are joined in the span', async () => {
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

test('embeddings are returned as they are and their vectors are not stored', async () => {
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

test('a call of the responses API, whole or streamed, becomes a span of the format gateway', async () => {
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

test('the list of models and a single model come from the upstream', async () => {
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

test('a model name that leads to another path of the upstream is 422, and nothing reaches the upstream', async () => {
  for (const name of ['..%2f..%2fadmin', '%2e%2e%2fresponses', 'a%252f..%252fb', 'a%3fb=1']) {
    const answer = await call(api, 'GET', `/v1/models/${name}`);
    expect([answer.status, answer.json?.['error']]).toMatchObject([422, { code: 'invalid_request', param: 'model' }]);
  }
  expect(upstream.reached).toEqual([]);
});
