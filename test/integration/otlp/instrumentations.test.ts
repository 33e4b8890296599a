// Real applications with real instrumentations and exporters: their spans become one readable
// trace, and each call is priced once.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { json, startModelServer } from '../../support/model_server.ts';
import { say, startUpstream, type TestUpstream, type UpstreamBehaviour } from '../../support/upstream.ts';
import { eventually } from '../../support/wait.ts';
import { call, KEY, type TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';

type Data = Record<string, unknown>;

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
beforeEach(() => {
  upstream.requests.length = 0;
});

const APP = new URL('../../support/instrumented_app.ts', import.meta.url).pathname;

/**
 * Runs the application against the API and returns the tree of its trace once it holds `spans`
 * spans.
 */
async function traced(
  library: string,
  encoding: 'json' | 'proto',
  spans: number,
  compression = 'gzip',
  models = upstream.url,
): Promise<{ trace_id: string; tree: Data[] }> {
  const { stdout } = await promisify(execFile)(process.execPath, [APP, library, encoding], {
    env: {
      PATH: process.env['PATH'] ?? '',
      UPSTREAM_URL: models,
      OTEL_SERVICE_NAME: 'shop',
      OTEL_EXPORTER_OTLP_ENDPOINT: `${api.url}/v1/otlp`,
      OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer%20${KEY}`,
      OTEL_EXPORTER_OTLP_COMPRESSION: compression,
    },
  });
  const trace_id = stdout.trim().split('\n').at(-1) ?? '';
  expect(trace_id).toMatch(/^[0-9a-f]{32}$/);
  let tree: Data[] = [];
  await eventually(
    async () => {
      const { json } = await call(api, 'GET', `/v1/traces/${trace_id}/tree`);
      tree = (json?.['data'] as Data | undefined)?.['spans'] as Data[];
      return tree.length === spans;
    },
    { what: `the trace of ${library}` },
  );
  return { trace_id, tree };
}

async function inTheList(trace_id: unknown): Promise<Data | undefined> {
  let found: Data | undefined;
  await eventually(
    async () => {
      const { json } = await call(api, 'GET', '/v1/traces?session_id=session-1&limit=100');
      found = (json?.['data'] as Data[]).find((trace) => trace['trace_id'] === trace_id);
      return found !== undefined;
    },
    { what: 'the trace in the list' },
  );
  return found;
}

const callTool: UpstreamBehaviour = (res, { body }) => {
  const message = {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Paris"}' } }],
  };
  const usage = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 };
  res.writeHead(200, { 'content-type': 'application/json' }).end(
    JSON.stringify({
      id: 'c',
      object: 'chat.completion',
      created: 1,
      model: body.model,
      choices: [{ index: 0, message, finish_reason: 'tool_calls' }],
      usage,
    }),
  );
};

const kindOf = (span: Data): unknown => (span['attributes'] as Data)['span_kind'];
/**
 * Cost of two calls of 100 input and 20 output tokens with gpt-4o-mini, in USD: 0.15 per million
 * input tokens, 0.60 per million output tokens.
 */
const COST = 2 * ((100 * 0.15) / 1e6 + (20 * 0.6) / 1e6);
const sum = (tree: readonly Data[], field: string): number =>
  tree.reduce((total, span) => total + Number(span[field]), 0);

test.each([
  ['openinference', 'json', 'none'],
  ['openllmetry', 'proto', 'gzip'],
] as const)('decodes %s around the openai package, exported as %s (%s)', async (library, encoding, compression) => {
  upstream.behave(say('Paris.'), say('Rome.'));
  const { trace_id, tree } = await traced(library, encoding, 3, compression);
  const [root] = tree;
  const question = (text: string) =>
    JSON.stringify([
      { role: 'system', content: 'Answer in one word.' },
      { role: 'user', content: text },
    ]);
  const aCall = {
    parent_span_id: root?.['span_id'],
    source_format: 'otlp',
    model: 'gpt-4o-mini',
    input_tokens: 100,
    output_tokens: 20,
    outcome: 'success',
    attributes: { span_kind: 'llm', scope: { name: expect.stringContaining('instrumentation-openai') as unknown } },
  };
  expect(tree).toMatchObject([
    {
      name: 'handle a question',
      parent_span_id: null,
      input_tokens: 0,
      cost_usd: 0,
      // The run's token counts stay in its attributes.
      attributes: { span_kind: 'event', 'gen_ai.usage.input_tokens': 200, scope: { name: 'shop', version: '1.2.3' } },
    },
    { ...aCall, prompt: question('What is the capital of France?'), response: 'Paris.' },
    { ...aCall, prompt: question('And of Italy?'), response: 'Rome.' },
  ]);
  expect(sum(tree, 'cost_usd')).toBeCloseTo(COST, 12);
  expect(await inTheList(trace_id)).toMatchObject({
    agent_id: 'agent_shop',
    input_tokens: 200,
    output_tokens: 40,
    cost_usd: COST,
    outcome: 'success',
  });
});

test.each([
  ['ai', 7],
  ['ai-legacy', 5],
] as const)('decodes the Vercel AI SDK (%s)', async (library, spans) => {
  upstream.behave(callTool, say('Sunny.'));
  const { trace_id, tree } = await traced(library, 'proto', spans);
  // In the order of their answers, because they may have begun in the same millisecond.
  const calls = tree
    .filter((span) => kindOf(span) === 'llm')
    .toSorted((a, b) => String(a['response']).length - String(b['response']).length);
  const tools = tree.filter((span) => kindOf(span) === 'tool');
  expect(calls.map((span) => [span['model'], span['input_tokens'], span['output_tokens']])).toEqual([
    ['gpt-4o-mini', 100, 20],
    ['gpt-4o-mini', 100, 20],
  ]);
  expect(calls.map((span) => span['response'])).toEqual(['', 'Sunny.']);
  expect(calls[0]?.['prompt']).toContain('How is the weather in the capital of France?');
  expect(calls[0]?.['prompt']).toContain('Answer in one word.');
  expect(calls[0]?.['attributes']).toMatchObject({ tool_calls: [expect.objectContaining({})] });
  expect(tools).toMatchObject([{ prompt: '{"city":"Paris"}', response: '{"city":"Paris","temp":21}' }]);
  expect(sum(tree, 'cost_usd')).toBeCloseTo(COST, 12);
  expect([sum(tree, 'input_tokens'), sum(tree, 'output_tokens')]).toEqual([200, 40]);
  // Every span except the root has a parent in the tree.
  const ids = new Set(tree.map((span) => span['span_id']));
  expect(tree.filter((span) => !ids.has(span['parent_span_id']))).toEqual([tree[0]]);
  expect(await inTheList(trace_id)).toMatchObject({ cost_usd: COST, input_tokens: 200, output_tokens: 40 });
});

const embeddings = {
  object: 'list',
  model: 'text-embedding-3-small',
  data: [{ object: 'embedding', index: 0, embedding: [0.1, 0.2] }],
  usage: { prompt_tokens: 8, total_tokens: 8 },
};
const completion = {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'gpt-4o-mini',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Paris.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 },
};

test('generateText, embed and rerank of the Vercel AI SDK count once, with session and user of their runtime context', async () => {
  const models = await startModelServer();
  models.behave(json(200, JSON.stringify(completion)), json(200, JSON.stringify(embeddings)));
  const { trace_id, tree } = await traced('ai-context', 'proto', 8, 'gzip', models.url).finally(() => models.close());
  // In the order of their tokens, because they may have begun in the same millisecond.
  const counted = tree
    .filter((span) => Number(span['input_tokens']) > 0)
    .toSorted((a, b) => Number(b['input_tokens']) - Number(a['input_tokens']));
  expect(counted.map((span) => [kindOf(span), span['model'], span['input_tokens'], span['output_tokens']])).toEqual([
    ['llm', 'gpt-4o-mini', 100, 20],
    ['llm', 'text-embedding-3-small', 8, 0],
  ]);
  expect(tree.filter((span) => kindOf(span) === 'llm')).toHaveLength(2);
  // 100 tokens in and 20 out of the call at 0.15 and 0.60 USD for a million, 8 of the embedding at 0.02.
  expect(sum(tree, 'cost_usd')).toBeCloseTo((100 * 0.15 + 20 * 0.6 + 8 * 0.02) / 1e6, 12);
  // The SDK writes the context on all of its spans but that of the call of a language model.
  const ofSdk = `trace_id = '${trace_id}' AND parent_span_id != '' AND name != 'chat gpt-4o-mini'`;
  const whose = await service.database.run(
    `SELECT session_id, user_id, count() FROM spans WHERE ${ofSdk} GROUP BY session_id, user_id`,
  );
  expect(whose.trim()).toBe(`session-7\tuser-7\t${tree.length - 2}`);
  const ranked = tree.filter((span) => String(span['name']).startsWith('rerank'));
  expect(ranked.map(kindOf)).toEqual(['event', 'event']);
});
