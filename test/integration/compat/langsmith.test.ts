// The unmodified clients of LangSmith against a service, by environment variables alone: traceable, and
// LangGraph, which traces itself. Inputs of a run whose end comes in a later request are kept.
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip, zstdCompress } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { say, startUpstream, type TestUpstream } from '../../support/upstream.ts';
import { eventually } from '../../support/wait.ts';
import { call, KEY, type TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';
import { type Data, named, runApp, traceOf, treeOf } from './an_app.ts';

let service: TestService;
let upstream: TestUpstream;
let api: TestApi;

beforeAll(async () => {
  upstream = await startUpstream();
  upstream.behave(say('Good day'));
  service = await TestService.start({ worker: { SERVICE_TRACE_GRACE_MS: '50' } });
  api = await service.startApi();
}, 120_000);
afterAll(async () => {
  await service.close();
  await upstream.close();
});

describe('traceable', () => {
  test.each(['0', '3000'])(
    'with a call of %s ms arrives as one tree with inputs, usage, session and feedback',
    async (pause) => {
      const { trace_id, stderr } = await runApp('langsmithTraceable', api, { PAUSE_MS: pause });
      expect(stderr).toBe('');
      const tree = await treeOf(api, trace_id, 3);
      expect(tree.map(({ name }) => name).sort()).toEqual(['agent', 'ask-model', 'look-up']);
      const root = named(tree, 'agent');
      expect(root).toMatchObject({ parent_span_id: null, tags: ['beta'] });
      expect(String(root['prompt'])).toContain('How many?');
      expect(named(tree, 'ask-model')).toMatchObject({
        parent_span_id: root['span_id'],
        model: 'gpt-4o-mini',
        input_tokens: 100,
        output_tokens: 20,
        prompt: JSON.stringify([{ role: 'user', content: 'How many?' }]),
        response: 'It is 1',
        attributes: { span_kind: 'llm' },
      });
      expect(named(tree, 'look-up')).toMatchObject({ attributes: { span_kind: 'tool' } });
      expect(await traceOf(api, 'session_id=session-4')).toMatchObject({ user_id: 'user-4' });
      await eventually(async () => {
        const { json } = await call(api, 'GET', `/v1/scores?trace_id=${String(trace_id)}`);
        return ((json?.['data'] as Data[] | undefined) ?? []).some(
          ({ name, value }) => name === 'helpful' && value === 1,
        );
      });
    },
    90_000,
  );
});

describe('LangGraph', () => {
  test('arrives with its nodes and one model call', async () => {
    const run_id = randomUUID();
    await runApp('langgraph', api, { UPSTREAM_URL: upstream.url, RUN_ID: run_id });
    const tree = await treeOf(api, run_id, 3);
    const calls = tree.filter(({ attributes }) => (attributes as Data)['span_kind'] === 'llm');
    expect(calls).toHaveLength(1);
    expect(calls[0]).toMatchObject({ model: 'gpt-4o-mini', response: 'Good day' });
    expect(String(calls[0]?.['prompt'])).toContain('Hello');
    expect(named(tree, 'agent')['name']).toBe('agent');
  }, 90_000);
});

const run = (more: Data = {}): Data => {
  const id = randomUUID();
  return {
    id,
    trace_id: id,
    name: 'sent',
    run_type: 'chain',
    start_time: new Date(Date.now() - 1000).toISOString(),
    end_time: new Date().toISOString(),
    inputs: { question: 'Q' },
    outputs: { answer: 'A' },
    ...more,
  };
};

/** Writes a body as LangSmith's clients do. */
function multipart(runs: readonly Data[]): { body: Buffer; type: string } {
  const parts = runs.flatMap(({ inputs, outputs, ...rest }) => [
    [`post.${String(rest['id'])}`, rest],
    [`post.${String(rest['id'])}.inputs`, inputs],
    [`post.${String(rest['id'])}.outputs`, outputs],
  ]);
  const text = parts
    .map(
      ([name, value]) =>
        `--xyz\r\nContent-Disposition: form-data; name="${String(name)}"\r\nContent-Type: application/json\r\n\r\n${JSON.stringify(value)}\r\n`,
    )
    .join('');
  return { body: Buffer.from(`${text}--xyz--\r\n`), type: 'multipart/form-data; boundary=xyz' };
}
const send = (raw: Buffer, headers: Record<string, string | undefined>) =>
  call(api, 'POST', '/langsmith/runs/multipart', {
    raw: new Uint8Array(raw),
    headers: { 'X-Org-Api-Key': undefined, 'X-Org-Id': undefined, 'x-api-key': KEY, ...headers },
  });

describe('a multipart body', () => {
  test.each([
    ['plain', undefined],
    ['compressed with gzip', 'gzip'],
    ['compressed with zstd', 'zstd'],
  ])('that is %s is accepted', async (_, encoding) => {
    const one = run();
    const { body, type } = multipart([one]);
    const raw =
      encoding === 'gzip'
        ? await promisify(gzip)(body)
        : encoding === 'zstd'
          ? await promisify(zstdCompress)(body)
          : body;
    expect((await send(raw, { 'Content-Type': type, 'Content-Encoding': encoding })).status).toBe(202);
    const [span] = await treeOf(api, one['id'], 1);
    expect(span).toMatchObject({
      prompt: '{"question":"Q"}',
      response: '{"answer":"A"}',
      duration_ms: expect.any(Number) as number,
    });
  });

  test.each([
    ['without a boundary', Buffer.from('x'), 'multipart/form-data'],
    ['that is cut', multipart([run()]).body.subarray(0, 200), 'multipart/form-data; boundary=xyz'],
    [
      'whose part is not JSON',
      Buffer.from('--xyz\r\nContent-Disposition: form-data; name="post.1"\r\n\r\n{\r\n--xyz--'),
      'multipart/form-data; boundary=xyz',
    ],
    [
      'whose run has an impossible time',
      multipart([run({ start_time: '2999-01-01T00:00:00Z', end_time: '2999-01-01T00:00:01Z' })]).body,
      'multipart/form-data; boundary=xyz',
    ],
  ])('%s is refused with 422', async (_, raw, type) => {
    const { status, json } = await send(raw, { 'Content-Type': type });
    expect([status, json?.['code']]).toEqual([422, 'invalid_request']);
  });

  test('with a wrong key is refused with 401', async () => {
    const { body, type } = multipart([run()]);
    expect((await send(body, { 'Content-Type': type, 'x-api-key': 'sk_svc_wrong' })).status).toBe(401);
  });
});
