// Deterministic judges that guard calls through the gateway, with the official packages of both APIs.
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { events, json, type ModelServer, startModelServer } from '../../support/model_server.ts';
import { eventually } from '../../support/wait.ts';
import { TestService } from '../a_service.ts';
import { call, KEY, type TestApi } from '../api/an_api.ts';
import { MESSAGE, STREAM as ANTHROPIC_STREAM } from './anthropic_shapes.ts';
import { COMPLETION, LAST, STREAM } from './openai_shapes.ts';

type Data = Record<string, unknown>;

let service: TestService;
let upstream: ModelServer;
let api: TestApi;
let openai: OpenAI;
let claude: Anthropic;

const judge = async (name: string, fields: Data): Promise<void> => {
  const made = await call(api, 'POST', '/v1/judges', {
    body: { kind: 'deterministic', name, threshold: { pass: 1 }, ...fields },
  });
  expect(made.status).toBe(201);
};

beforeAll(async () => {
  upstream = await startModelServer();
  service = await TestService.start({
    api: { llmUrl: upstream.url, anthropicUrl: upstream.url },
    worker: { SERVICE_TRACE_GRACE_MS: '50' },
  });
  api = await service.startApi();
  openai = new OpenAI({ apiKey: KEY, baseURL: `${api.url}/v1`, maxRetries: 0 });
  claude = new Anthropic({ apiKey: KEY, baseURL: api.url, maxRetries: 0 });
  const prompt = ['prompt'];
  await judge('No launch codes', {
    guard: 'block',
    rule: { type: 'not_contains', value: 'launch code', fields: prompt },
  });
  await judge('No cards', {
    guard: 'redact',
    rule: { type: 'regex_absent', pattern: '\\d{4}-\\d{4}', fields: prompt },
  });
  const scope = { tags: ['guarded'] };
  await judge('No capitals', { guard: 'block', scope, rule: { type: 'regex_absent', pattern: 'Paris|巴黎' } });
  await judge('No verdict', {
    guard: 'redact',
    scope: { tags: ['softly'] },
    rule: { type: 'regex_absent', pattern: 'Pa.is' },
  });
});
afterAll(async () => {
  await service.close();
  await upstream.close();
});
beforeEach(() => {
  upstream.reached.length = 0;
});

const messages = (content: string) => [{ role: 'user' as const, content }];
let traces = 0;
const aTrace = (tags = 'none'): { trace_id: string; headers: Record<string, string> } => {
  const trace_id = `trc_guard_${++traces}`;
  return { trace_id, headers: { 'X-Service-Trace-Id': trace_id, 'X-Service-Tags': tags } };
};

async function spanOf(trace_id: string): Promise<Data & { attributes: Data }> {
  let spans: (Data & { attributes: Data })[] = [];
  await eventually(
    async () => {
      const { json: body } = await call(api, 'GET', `/v1/traces/${trace_id}/tree`);
      spans = ((body?.['data'] as Data | undefined)?.['spans'] ?? []) as typeof spans;
      return spans.length > 0;
    },
    { what: `the trace ${trace_id}` },
  );
  if (spans[0] === undefined) throw new Error('no span');
  return spans[0];
}

test('a prompt that a judge blocks is 403 naming the judge in the shape of each API, recorded without a call', async () => {
  const one = aTrace();
  await expect(
    openai.chat.completions.create(
      { model: 'gpt-4o-mini', messages: messages('The launch code?') },
      { headers: one.headers },
    ),
  ).rejects.toThrow(OpenAI.PermissionDeniedError);
  const failure = await claude.messages
    .create({ model: 'claude-sonnet-4-5', max_tokens: 1, messages: messages('The launch code?') })
    .catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(Anthropic.PermissionDeniedError);
  expect((failure as InstanceType<typeof Anthropic.APIError>).error).toMatchObject({
    type: 'error',
    error: { type: 'permission_error', message: expect.stringContaining('"No launch codes"') as string },
  });
  expect(upstream.reached).toEqual([]);
  expect(await spanOf(one.trace_id)).toMatchObject({
    outcome: 'error',
    input_tokens: 0,
    cost_usd: 0,
    attributes: { guards: [{ name: 'No launch codes', action: 'block', field: 'prompt' }], http_status: 403 },
  });
});

test('a prompt is redacted before it goes upstream and into the record; all other bytes stay', async () => {
  upstream.behave(json(200, JSON.stringify(COMPLETION)));
  const { trace_id, headers } = aTrace();
  const raw =
    '{ "model":"gpt-4o-mini", "seed":9007199254740993, "messages":[{"role":"user","content":"My card is 1234-5678, caf\\u00e9"}], "user":"1234-5678" }';
  await call(api, 'POST', '/v1/chat/completions', { raw, headers });
  expect(upstream.reached[0]?.body.toString()).toBe(
    '{ "model":"gpt-4o-mini", "seed":9007199254740993, "messages":[{"role":"user","content":"My card is [REDACTED], café"}], "user":"1234-5678" }',
  );
  const span = await spanOf(trace_id);
  expect(span['prompt']).toContain('[REDACTED]');
  expect(span['prompt']).not.toContain('1234');
  expect(span.attributes['guards']).toMatchObject([{ name: 'No cards', action: 'redact', field: 'prompt' }]);
});

test('a response that a judge blocks is 403, whole or streamed, and its use is recorded', async () => {
  upstream.behave(json(200, JSON.stringify(COMPLETION)), events([...STREAM, ...LAST]), events(ANTHROPIC_STREAM));
  const [whole, streamed, anthropic] = [aTrace('guarded'), aTrace('guarded'), aTrace('guarded')];
  const ask = { model: 'gpt-4o-mini', messages: messages('The capital of France?') };
  await expect(openai.chat.completions.create(ask, { headers: whole.headers })).rejects.toThrow(/No capitals/);
  await expect(openai.chat.completions.create({ ...ask, stream: true }, { headers: streamed.headers })).rejects.toThrow(
    OpenAI.PermissionDeniedError,
  );
  await expect(
    claude.messages.create({ ...ask, max_tokens: 9, stream: true }, { headers: anthropic.headers }),
  ).rejects.toThrow(Anthropic.PermissionDeniedError);
  expect(await spanOf(whole.trace_id)).toMatchObject({
    outcome: 'error',
    input_tokens: 14,
    output_tokens: 2,
    attributes: { guards: [{ name: 'No capitals', action: 'block', field: 'response' }] },
  });
  expect(await spanOf(streamed.trace_id)).toMatchObject({ input_tokens: 1000, output_tokens: 500 });
  expect(await spanOf(anthropic.trace_id)).toMatchObject({ input_tokens: 1310, output_tokens: 50 });
});

test('a response is redacted; a stream without a match passes byte for byte', async () => {
  upstream.behave(json(200, JSON.stringify(MESSAGE)), events(ANTHROPIC_STREAM.slice(0, 6)));
  const { trace_id, headers } = aTrace('softly');
  const ask = { model: 'claude-sonnet-4-5', max_tokens: 9, messages: messages('The capital of France?') };
  const message = await claude.messages.create(ask, { headers });
  expect(message.content).toEqual([MESSAGE.content[0], { type: 'text', text: '[REDACTED].' }]);
  expect(message.usage).toEqual(MESSAGE.usage);
  expect((await spanOf(trace_id))['response']).toBe('[REDACTED].');
  const answer = await call(api, 'POST', '/v1/messages', {
    raw: JSON.stringify({ ...ask, stream: true }),
    headers: aTrace('softly').headers,
  });
  expect([answer.status, answer.text]).toEqual([200, ANTHROPIC_STREAM.slice(0, 6).join('')]);
});

test('a guard reads prompt and response alone, and redacts by rules of texts that must be absent', async () => {
  const body = { kind: 'deterministic', name: 'j', threshold: { pass: 1 }, guard: 'redact' };
  for (const [rule, message] of [
    [{ type: 'max_length', max: 3 }, /^guard: redact needs a rule of type/],
    [{ type: 'regex_absent', pattern: 'a', fields: ['name'] }, /^rule.fields: a guard reads/],
  ] as const) {
    const answer = await call(api, 'POST', '/v1/judges', { body: { ...body, rule } });
    expect([answer.status, answer.json?.['code']]).toEqual([422, 'invalid_request']);
    expect(answer.json?.['detail']).toMatch(message);
  }
});
