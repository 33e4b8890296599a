// The client of the upstream against a real HTTP server: the failures that it retries, those that
// it does not, and the end of a call.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openUpstream, type TryResult, type Upstream, UpstreamFailed } from '../../../ops/platform/llm/upstream.ts';
import {
  after,
  drop,
  fail,
  hang,
  say,
  startUpstream,
  type TestUpstream,
  type UpstreamBehaviour,
} from '../../support/upstream.ts';
import { eventually } from '../../support/wait.ts';

let server: TestUpstream;
let tries: TryResult[] = [];

beforeAll(async () => {
  server = await startUpstream();
});
afterAll(() => server.close());

function open(over: { retriesMax?: number; api_key?: string } = {}): Upstream {
  tries = [];
  const upstream = openUpstream({
    base_url: server.url,
    api_key: 'sk-test',
    random: () => 0,
    observe: (result) => tries.push(result),
    ...over,
  });
  if (upstream === null) throw new Error('a base URL was given');
  return upstream;
}

const request = { model: 'gpt-4o', messages: [{ role: 'user' as const, content: 'hello' }] };
const options = () => ({ signal: new AbortController().signal, timeoutMs: 20_000 });
const answers = (...behaviours: UpstreamBehaviour[]): number => {
  server.behave(...behaviours);
  return server.requests.length;
};

it('without a base URL there is no upstream', () => {
  expect(openUpstream({ base_url: undefined, api_key: 'sk' })).toBeNull();
});

it('an upstream call sends the request with the key and returns text, usage, model and the raw answer', async () => {
  const before = answers(say('hi there', { prompt_tokens: 7, completion_tokens: 3 }));
  const answer = await open().chat(request, options());
  expect(answer).toMatchObject({
    text: 'hi there',
    usage: { input_tokens: 7, output_tokens: 3 },
    model: 'gpt-4o',
    finish_reason: 'stop',
  });
  expect(answer.raw['object']).toBe('chat.completion');
  expect(server.requests[before]).toMatchObject({
    body: { ...request, stream: false },
    headers: { authorization: 'Bearer sk-test' },
  });
});

it('an upstream call sends no key when none is set, whatever the environment contains', async () => {
  process.env['OPENAI_API_KEY'] = 'sk-from-the-environment';
  const before = answers(say('hi'));
  const upstream = openUpstream({ base_url: server.url, api_key: undefined });
  await upstream?.chat(request, options());
  delete process.env['OPENAI_API_KEY'];
  expect(server.requests[before]?.headers.authorization).toBeUndefined();
});

it('a call is retried after 429, 408, 5xx and a broken connection, and not after other rejections', async () => {
  const before = answers(fail(429, { 'retry-after': '0' }), fail(500), drop, say('at last'));
  expect((await open().chat(request, options())).text).toBe('at last');
  expect(tries).toEqual(['rate_limited', 'server_error', 'no_answer', 'answered']);
  expect(server.requests.length - before).toBe(4);
  answers(fail(400));
  await expect(open().chat(request, options())).rejects.toMatchObject({ kind: 'refused', status: 400 });
  expect(tries).toEqual(['refused']);
});

it("an upstream's complaint about the service's own key is not passed on", async () => {
  answers(
    (res) =>
      void res
        .writeHead(401, { 'content-type': 'application/json' })
        .end('{"error":{"message":"Incorrect API key: sk-te***"}}'),
  );
  const refused = await open()
    .chat(request, options())
    .catch((error: unknown) => error);
  expect(refused).toMatchObject({ kind: 'refused', status: 401 });
  expect(String(refused)).not.toContain('sk-te');
});

it('a call fails after its attempts, and says that a later one may work', async () => {
  answers(fail(503));
  const failed = open({ retriesMax: 1 }).chat(request, options());
  await expect(failed).rejects.toBeInstanceOf(UpstreamFailed);
  await expect(failed).rejects.toMatchObject({ kind: 'unavailable', status: 503 });
  expect(tries).toEqual(['server_error', 'server_error']);
});

it('a call does not wait for an upstream that asks for more time than a call may take', async () => {
  answers(fail(429, { 'retry-after': '3600' }));
  await expect(open().chat(request, options())).rejects.toMatchObject({
    kind: 'unavailable',
    status: 429,
    retryAfterMs: 3_600_000,
  });
  expect(tries).toEqual(['rate_limited']);
});

it('a call waits as long as the upstream asks', async () => {
  const before = answers(fail(429, { 'retry-after': '1' }), say('now'));
  await open().chat(request, options());
  const [first, second] = server.requests.slice(before);
  expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(990);
});

it('an attempt is bounded in time, headers and body', async () => {
  answers(hang);
  await expect(open({ retriesMax: 0 }).chat(request, { ...options(), timeoutMs: 100 })).rejects.toMatchObject({
    kind: 'unavailable',
  });
  answers((res) => {
    res.writeHead(200, { 'content-type': 'application/json' });
    res.write('{');
  });
  await expect(open({ retriesMax: 0 }).chat(request, { ...options(), timeoutMs: 100 })).rejects.toMatchObject({
    kind: 'unavailable',
  });
});

it('an answer is bounded in bytes', async () => {
  answers(say('x'.repeat(5 * 1024 * 1024)));
  await expect(open().chat(request, options())).rejects.toBeInstanceOf(UpstreamFailed);
  expect(tries.at(-1)).toBe('refused');
});

it('an aborted call ends at once, during an attempt and between two', async () => {
  answers(hang);
  const inTry = new AbortController();
  const call = open().chat(request, { signal: inTry.signal, timeoutMs: 60_000 });
  inTry.abort(new Error('in a try'));
  await expect(call).rejects.toThrow('in a try');
  let answered = false;
  answers((res, asked) => {
    res.once('close', () => (answered = true));
    fail(429, { 'retry-after': '9' })(res, asked);
  });
  const between = new AbortController();
  const waiting = open().chat(request, { signal: between.signal, timeoutMs: 60_000 });
  const refused = expect(waiting).rejects.toThrow('between two');
  await eventually(() => answered, { what: 'the first answer' });
  between.abort(new Error('between two'));
  await refused;
});

it('a call is repeated once after an answer that is not a chat completion, and never a third time', async () => {
  for (const [type, text] of [
    ['application/json', '{"hello":1}'],
    ['application/json', 'no JSON'],
    ['text/html', '<html>'],
    ['text/plain', ''],
  ] as const) {
    const before = answers((res) => void res.writeHead(200, { 'content-type': type }).end(text));
    await expect(open().chat(request, options())).rejects.toMatchObject({ kind: 'unreadable', status: 200 });
    expect(server.requests.length - before).toBe(2);
  }
  answers((res) => void res.writeHead(200, { 'content-type': 'text/html' }).end('<html>'), say('at last'));
  expect((await open().chat(request, options())).text).toBe('at last');
});

it('a call follows no redirect: neither key nor request reach the named address', async () => {
  const elsewhere = await startUpstream();
  for (const status of [301, 302, 303, 307, 308]) {
    const before = answers(
      (res) => void res.writeHead(status, { location: `${elsewhere.url}/chat/completions` }).end(),
    );
    await expect(open().chat(request, options())).rejects.toMatchObject({ kind: 'refused', status });
    expect(server.requests.length - before).toBe(1);
  }
  expect(elsewhere.requests).toEqual([]);
  await elsewhere.close();
});

it('a call has no text when the model gave none', async () => {
  answers(
    after(
      10,
      (res) =>
        void res
          .writeHead(200, { 'content-type': 'application/json' })
          .end('{"choices":[{"message":{"content":null}}]}'),
    ),
  );
  expect(await open().chat(request, options())).toMatchObject({
    text: '',
    usage: null,
    model: 'gpt-4o',
    finish_reason: null,
  });
});
