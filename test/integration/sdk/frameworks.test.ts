// The recipes of the README for model packages and agent frameworks, with the libraries themselves
// and the SDK from its tarball: one trace, each call counted once, session and user on every span.
// The packages of Mastra are too large to be installed here: MILLRACE_MASTRA names a folder in which
// npm has installed them, and without it the test of their recipe is skipped.
import { readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ModelBehaviour, type ModelServer, startModelServer } from '../../support/model_server.ts';
import { jsBlocks } from '../../support/sdk_package.ts';
import { app, type Data, environment, runApp, spansOf, tenant } from './an_app.ts';

const README = readFileSync(new URL('../../../api/sdk/README.md', import.meta.url), 'utf8');
const recipe = (heading: string): string => jsBlocks(README, heading)[0] ?? '';
let models: ModelServer;

beforeAll(async () => {
  models = await startModelServer();
});
afterAll(() => models.close());

const CALLED = { name: 'weather', arguments: '{"city":"Paris"}' };
const completion = (message: Data, finish_reason: string): Data => ({
  object: 'chat.completion',
  created: 1,
  choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason }],
  usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120, prompt_tokens_details: { cached_tokens: 40 } },
});
const response = (item: Data): Data => ({
  object: 'response',
  created_at: 1,
  status: 'completed',
  output: [{ status: 'completed', ...item }],
  usage: {
    input_tokens: 100,
    input_tokens_details: { cached_tokens: 40 },
    output_tokens: 20,
    output_tokens_details: { reasoning_tokens: 5 },
    total_tokens: 120,
  },
});
const text = { type: 'output_text', text: 'Sunny.', annotations: [] };

/** Answers of a model that calls the tool `weather` when it has tools, and then says something. */
const ANSWERS: Readonly<Record<string, (body: Data) => Data>> = {
  '/v1/messages': () => ({
    type: 'message',
    role: 'assistant',
    content: [{ type: 'text', text: 'Paris.' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 60, cache_read_input_tokens: 40, cache_creation_input_tokens: 0, output_tokens: 20 },
  }),
  '/v1/chat/completions': ({ tools, messages }) =>
    tools === undefined || JSON.stringify(messages).includes('"tool"')
      ? completion({ content: 'Sunny.' }, 'stop')
      : completion({ content: null, tool_calls: [{ id: 'call_1', type: 'function', function: CALLED }] }, 'tool_calls'),
  '/v1/responses': ({ input }) =>
    JSON.stringify(input).includes('function_call_output')
      ? response({ type: 'message', id: 'msg_1', role: 'assistant', content: [text] })
      : response({ type: 'function_call', id: 'fc_1', call_id: 'call_1', ...CALLED }),
};
const answer: ModelBehaviour = (res, { path, body }) => {
  const asked = JSON.parse(body.toString()) as Data;
  const id = `answer_${models.reached.length}`;
  const made = ANSWERS[path]?.(asked);
  res.writeHead(made === undefined ? 404 : 200, { 'content-type': 'application/json' });
  res.end(JSON.stringify({ id, model: asked['model'], ...made }));
};

/** Runs a recipe against the models, and returns the spans of its trace. */
async function traced(name: string, code: string, count: number, args: string[] = []): Promise<Data[]> {
  models.behave(answer);
  const root = models.url.replace(/\/v1$/, '');
  await runApp(
    name,
    code,
    { ...environment(), OPENAI_BASE_URL: models.url, ANTHROPIC_BASE_URL: root, ANTHROPIC_API_KEY: 'none' },
    args,
  );
  return spansOf(count);
}

const total = (spans: readonly Data[], field: string): number =>
  spans.reduce((sum, span) => sum + Number(span[field]), 0);
const treeOf = (spans: readonly Data[]): Map<unknown, unknown> => {
  const names = new Map(spans.map(({ span_id, name }) => [span_id, name]));
  return new Map(spans.map(({ name, parent_span_id }) => [name, names.get(parent_span_id) ?? null]));
};
const WHOSE = { attributes: { 'session.id': 'session-1', 'user.id': 'user-1' } };

describe('a recipe of the README counts each call once and has session and user on every span', () => {
  test('Anthropic, whose package makes a span of its own beside the instrumentation', async () => {
    const spans = await traced('anthropic', recipe('With the Anthropic package'), 2);
    for (const span of spans) expect(span).toMatchObject({ kind: 'llm', model: 'claude-haiku-4-5', ...WHOSE });
    expect([total(spans, 'input_tokens'), total(spans, 'output_tokens')]).toEqual([100, 20]);
    expect(spans.filter(({ response: said }) => said === 'Paris.')).toHaveLength(1);
  });

  test('LangGraph: the graph, its node and the call', async () => {
    const spans = await traced('langgraph', recipe('With LangChain and LangGraph'), 4);
    for (const span of spans) expect(span).toMatchObject(WHOSE);
    expect([total(spans, 'input_tokens'), total(spans, 'output_tokens')]).toEqual([100, 20]);
    expect(treeOf(spans).get('ChatOpenAI')).toBe('answer');
    expect(treeOf(spans).get('answer')).toBe('LangGraph');
  });

  test.each([
    ['responses', ''],
    ['chat completions', "import { setOpenAIAPI } from '@openai/agents';\nsetOpenAIAPI('chat_completions');\n"],
  ])('OpenAI Agents by %s: the run, its turns, two calls and a tool', async (api, set) => {
    const name = api === 'responses' ? 'agents_responses' : 'agents_chat';
    const spans = await traced(name, set + recipe('With the OpenAI Agents SDK'), 8);
    for (const span of spans) expect(span).toMatchObject(WHOSE);
    const [calls, tools] = ['llm', 'tool'].map((kind) => spans.filter((span) => span['kind'] === kind));
    expect(calls?.map((span) => [span['model'], span['input_tokens'], span['output_tokens']])).toEqual([
      ['gpt-4o-mini', 100, 20],
      ['gpt-4o-mini', 100, 20],
    ]);
    expect(total(spans, 'input_tokens')).toBe(200);
    expect(tools).toMatchObject([{ name: 'weather', prompt: '{"city":"Paris"}', response: 'sun in Paris' }]);
    expect(treeOf(spans).get('weather')).toBe('turn');
    expect(treeOf(spans).get('Guide')).toBe('Agent workflow');
    expect(treeOf(spans).get('question')).toBeNull();
  });
});

const MASTRA = process.env['MILLRACE_MASTRA'];

test.skipIf(MASTRA === undefined)(
  `Mastra's own exporter sends the run of an agent with its calls and tools${MASTRA === undefined ? ' (skipped: MILLRACE_MASTRA is not set)' : ''}`,
  async () => {
    symlinkSync(path.join(MASTRA ?? '', 'node_modules/@mastra'), path.join(app, 'node_modules/@mastra'));
    const agent = `import { Agent } from '@mastra/core/agent';
      import { createTool } from '@mastra/core/tools';
      import { createOpenAI } from '@ai-sdk/openai';
      import { z } from 'zod';
      const openai = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL, apiKey: process.env.OPENAI_API_KEY });
      const weather = createTool({ id: 'weather', description: 'Weather', inputSchema: z.object({ city: z.string() }), execute: async () => 'sun' });
      const helper = new Agent({ id: 'helper', name: 'helper', instructions: 'Be brief.', model: openai.chat('gpt-4o-mini'), tools: { weather } });`;
    const call = `const metadata = { sessionId: 'session-1', userId: 'user-1' };
      await mastra.getAgent('helper').generate('How is the weather in Paris?', { tracingOptions: { metadata } });
      await observability.shutdown();`;
    const spans = await traced('mastra', [agent, recipe('With Mastra'), call].join('\n'), 10);
    expect([total(spans, 'input_tokens'), total(spans, 'output_tokens')]).toEqual([200, 40]);
    expect(spans.filter(({ kind }) => kind === 'llm')).toHaveLength(2);
    expect(spans.filter(({ kind }) => kind === 'tool')).toMatchObject([{ name: 'execute_tool weather' }]);
    const metadata = { 'mastra.metadata.sessionId': 'session-1', 'mastra.metadata.userId': 'user-1' };
    for (const span of spans) expect(span).toMatchObject({ attributes: metadata });
    expect(treeOf(spans).get('invoke_agent helper')).toBeNull();
    const { json } = await tenant.get('/v1/traces?session_id=session-1&user_id=user-1');
    expect(json?.['data']).toMatchObject([{ span_count: 10, input_tokens: 200 }]);
  },
);

describe('node --import @millrace/sdk/auto traces without a change of the application', () => {
  const auto = ['--import', '@millrace/sdk/auto'];

  test('the OpenAI package that the application imports', async () => {
    const code = `import OpenAI from 'openai';
      const messages = [{ role: 'user', content: 'Hello' }];
      await new OpenAI().chat.completions.create({ model: 'gpt-4o-mini', messages });`;
    expect(await traced('auto_openai', code, 1, auto)).toMatchObject([{ model: 'gpt-4o-mini', input_tokens: 100 }]);
  });

  test('LangGraph', async () => {
    const code = `import { END, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
      const graph = new StateGraph(MessagesAnnotation)
        .addNode('answer', () => ({ messages: [{ role: 'assistant', content: 'Paris.' }] }))
        .addEdge(START, 'answer')
        .addEdge('answer', END)
        .compile();
      await graph.invoke({ messages: [{ role: 'user', content: 'Capital of France?' }] });`;
    expect(treeOf(await traced('auto_langgraph', code, 3, auto)).get('answer')).toBe('LangGraph');
  });
});
