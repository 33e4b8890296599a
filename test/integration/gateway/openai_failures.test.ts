// The gateway during failures: of the upstream, of a caller that disconnects during a stream, or of
// the request itself.
import { expect, test } from 'vitest';
import { events, json, reset, startModelServer } from '../../support/model_server.ts';
import { eventually } from '../../support/wait.ts';
import { call } from '../api/an_api.ts';
import { upstream, api, client, aTrace, spanOf, attributesOf } from './openai_client.ts';
import { question, STREAM } from './openai_shapes.ts';

test('cookies pass in neither direction, and a redirect of the upstream is neither followed nor returned', async () => {
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

test('an HTML page and an unparsable answer of the upstream are recorded as errors', async () => {
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

test('an error of the upstream is returned unchanged and is recorded', async () => {
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

test('a caller that disconnects in a stream is recorded with what it received, and the call to the upstream is aborted', async () => {
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

test('an upstream that disconnects before its answer is 502, within it a broken stream, and neither is retried', async () => {
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
  'a request that the gateway itself refuses has an error in the shape that clients read: %s',
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
