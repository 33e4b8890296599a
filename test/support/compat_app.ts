// Applications with unmodified clients of Langfuse and LangSmith, configured by environment variables
// alone. Each runs in a process of its own, sends what its name says, and prints its result as one
// line of JSON. Settings: LANGFUSE_BASE_URL, LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY;
// LANGSMITH_ENDPOINT, LANGSMITH_API_KEY, LANGSMITH_TRACING; UPSTREAM_URL is a model server.
import { setTimeout as sleep } from 'node:timers/promises';

const upstream = process.env['UPSTREAM_URL'] ?? '';

/** Starts OpenTelemetry with Langfuse's processor; the function that it returns sends all spans. */
async function startLangfuse(): Promise<() => Promise<void>> {
  const { LangfuseSpanProcessor } = await import('@langfuse/otel');
  const { NodeTracerProvider } = await import('@opentelemetry/sdk-trace-node');
  const provider = new NodeTracerProvider({ spanProcessors: [new LangfuseSpanProcessor()] });
  provider.register();
  return () => provider.forceFlush();
}

async function langfuseTracing(): Promise<unknown> {
  const flush = await startLangfuse();
  const { startActiveObservation, startObservation, propagateAttributes } = await import('@langfuse/tracing');
  const trace_id = await propagateAttributes(
    { userId: 'user-1', sessionId: 'session-1', tags: ['beta'], metadata: { region: 'eu' }, version: '2.0' },
    () =>
      startActiveObservation('answer-question', async (root) => {
        root.update({ input: { question: 'Where is it?' }, output: 'On the shelf' });
        const call = startObservation(
          'ask-model',
          {
            model: 'gpt-4o-mini',
            input: [{ role: 'user', content: 'Where is it?' }],
            modelParameters: { temperature: 0.2 },
            prompt: { name: 'support', version: 3, isFallback: false },
            metadata: { attempt: 1 },
          },
          { asType: 'generation' },
        );
        await sleep(20);
        call.update({
          output: { role: 'assistant', content: 'On the shelf' },
          completionStartTime: new Date(),
          usageDetails: { input: 60, input_cached_tokens: 40, output: 12, output_reasoning_tokens: 8, total: 120 },
        });
        call.end();
        const tool = startObservation('look-up', { input: { sku: 7 }, output: 'shelf 3' }, { asType: 'tool' });
        tool.end();
        const failed = startObservation(
          'check',
          { level: 'ERROR', statusMessage: 'no stock' },
          { asType: 'guardrail' },
        );
        failed.end();
        const priced = startObservation(
          'priced',
          { model: 'own-model', output: 'x', usageDetails: { input: 5, output: 5 }, costDetails: { total: 0.25 } },
          { asType: 'generation' },
        );
        priced.end();
        return root.traceId;
      }),
  );
  await flush();
  return { trace_id };
}

async function langfuseOpenai(): Promise<unknown> {
  const flush = await startLangfuse();
  const { observeOpenAI } = await import('@langfuse/openai');
  const { default: OpenAI } = await import('openai');
  const { startActiveObservation } = await import('@langfuse/tracing');
  const client = observeOpenAI(new OpenAI({ apiKey: 'none', baseURL: upstream }));
  const trace_id = await startActiveObservation('openai', async (root) => {
    await client.chat.completions.create({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Hello' }] });
    return root.traceId;
  });
  await flush();
  return { trace_id };
}

async function langfuseLangchain(): Promise<unknown> {
  const flush = await startLangfuse();
  const { CallbackHandler } = await import('@langfuse/langchain');
  const { ChatOpenAI } = await import('@langchain/openai');
  const handler = new CallbackHandler({ userId: 'user-2', sessionId: 'session-2', tags: ['chain'] });
  const model = new ChatOpenAI({ model: 'gpt-4o-mini', apiKey: 'none', configuration: { baseURL: upstream } });
  const { ChatPromptTemplate } = await import('@langchain/core/prompts');
  const chain = ChatPromptTemplate.fromMessages([['user', '{question}']]).pipe(model);
  await chain.invoke({ question: 'Hello' }, { callbacks: [handler] });
  await flush();
  return { trace_id: handler.last_trace_id };
}

async function langfuseVercelAiSdk(): Promise<unknown> {
  const flush = await startLangfuse();
  const { LangfuseVercelAiSdkIntegration } = await import('@langfuse/vercel-ai-sdk');
  const { propagateAttributes, startActiveObservation } = await import('@langfuse/tracing');
  const { generateText, registerTelemetry } = await import('ai');
  const { createOpenAI } = await import('@ai-sdk/openai');
  registerTelemetry(new LangfuseVercelAiSdkIntegration());
  const model = createOpenAI({ apiKey: 'none', baseURL: upstream }).chat('gpt-4o-mini');
  const trace_id = await propagateAttributes({ userId: 'user-5', sessionId: 'session-5' }, () =>
    startActiveObservation('ai-sdk', async (root) => {
      await generateText({ model, prompt: 'Hello' });
      return root.traceId;
    }),
  );
  await flush();
  return { trace_id };
}

async function langfuseClient(): Promise<unknown> {
  const { LangfuseClient } = await import('@langfuse/client');
  const client = new LangfuseClient();
  const trace_id = process.env['TRACE_ID'] ?? '';
  client.score.create({
    id: 'score-1',
    traceId: trace_id,
    name: 'helpful',
    value: 1,
    dataType: 'BOOLEAN',
    comment: 'yes',
  });
  client.score.create({ traceId: trace_id, name: 'stars', value: 4.5 });
  await client.flush();
  const created = await client.prompt.create({
    name: 'greeting',
    type: 'chat',
    prompt: [{ role: 'system', content: 'Greet {{name}}' }],
    labels: ['production'],
    config: { temperature: 0.1 },
  });
  await client.prompt.create({ name: 'greeting', type: 'text', prompt: 'Hi {{name}}', labels: ['staging'] });
  const production = await client.prompt.get('greeting', { type: 'chat', cacheTtlSeconds: 60 });
  const staging = await client.prompt.get('greeting', { label: 'staging' });
  const newest = await client.prompt.get('greeting', { label: 'latest' });
  await client.prompt.update({ name: 'greeting', version: 2, newLabels: ['production'] });
  const moved = await client.prompt.get('greeting', { cacheTtlSeconds: 0 });
  const fallback = await client.prompt.get('missing', { fallback: 'Hello {{name}}', maxRetries: 0 });
  const project = await client.api.projects.get();
  const health = await client.api.health.health();
  const list = await client.api.prompts.list({});
  const dataset = await client.dataset.get('capitals');
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- the answer to an unsupported path is what the test looks at
  const refused = await client.api.trace.list({}).then(
    () => null,
    (error: unknown) => error as { statusCode?: number; body?: unknown },
  );
  return {
    created: [created.name, created.version, created.type],
    production: [production.version, production.compile({ name: 'Ada' }), production.config],
    staging: [staging.version, staging.compile({ name: 'Ada' })],
    newest: newest.version,
    moved: moved.version,
    fallback: fallback.compile({ name: 'Ada' }),
    project: project.data[0]?.id,
    health: health.status,
    names: list.data.map(({ name, versions, labels }) => ({ name, versions, labels })),
    items: dataset.items.map(({ input, expectedOutput }) => ({ input, expectedOutput })),
    refused: { status: refused?.statusCode, body: refused?.body },
  };
}

async function langfuseLegacy(): Promise<unknown> {
  const { Langfuse } = await import('langfuse');
  const langfuse = new Langfuse({ flushInterval: 200 });
  const trace = langfuse.trace({ name: 'legacy', userId: 'user-3', sessionId: 'session-3', tags: ['old'], input: 'Q' });
  const span = trace.span({ name: 'retrieve', input: { q: 1 } });
  const generation = span.generation({ name: 'call', model: 'gpt-4o-mini', input: [{ role: 'user', content: 'Q' }] });
  await langfuse.flushAsync();
  await sleep(Number(process.env['PAUSE_MS'] ?? 0));
  generation.end({ output: 'A', usage: { input: 100, output: 20, unit: 'TOKENS' } });
  span.end({ output: { found: true } });
  trace.event({ name: 'clicked' });
  trace.update({ output: 'A' });
  trace.score({ name: 'stars', value: 5 });
  await langfuse.shutdownAsync();
  return { trace_id: trace.id };
}

async function langsmithTraceable(): Promise<unknown> {
  const { traceable, getCurrentRunTree } = await import('langsmith/traceable');
  const { Client } = await import('langsmith');
  const client = new Client();
  const ask = traceable(
    async (input: { messages: { role: string; content: string }[] }) => {
      await sleep(Number(process.env['PAUSE_MS'] ?? 0));
      return {
        role: 'assistant',
        content: `It is ${input.messages.length}`,
        usage_metadata: { input_tokens: 100, output_tokens: 20, total_tokens: 120 },
      };
    },
    { name: 'ask-model', run_type: 'llm', client, metadata: { ls_provider: 'openai', ls_model_name: 'gpt-4o-mini' } },
  );
  const look = traceable((sku: string) => `shelf of ${sku}`, { name: 'look-up', run_type: 'tool', client });
  let trace_id = '';
  const run = traceable(
    async (question: string) => {
      trace_id = getCurrentRunTree().trace_id;
      await look('sku-7');
      const { content } = await ask({ messages: [{ role: 'user', content: question }] });
      return content;
    },
    {
      name: 'agent',
      run_type: 'chain',
      client,
      tags: ['beta'],
      metadata: { user_id: 'user-4', session_id: 'session-4' },
    },
  );
  await run('How many?');
  const failing = traceable(() => Promise.reject(new Error('broken')), { name: 'fails', run_type: 'chain', client });
  await failing().catch(() => undefined);
  await client.createFeedback({
    runId: trace_id,
    traceId: trace_id,
    sessionId: trace_id,
    key: 'helpful',
    score: 1,
    comment: 'yes',
  });
  await client.awaitPendingTraceBatches();
  await client.flush();
  return { trace_id };
}

async function langgraph(): Promise<unknown> {
  const { ChatOpenAI } = await import('@langchain/openai');
  const { MessagesAnnotation, StateGraph } = await import('@langchain/langgraph');
  const { awaitAllCallbacks } = await import('@langchain/core/callbacks/promises');
  const model = new ChatOpenAI({ model: 'gpt-4o-mini', apiKey: 'none', configuration: { baseURL: upstream } });
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('agent', async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
    .addEdge('__start__', 'agent')
    .addEdge('agent', '__end__')
    .compile();
  const run_id = process.env['RUN_ID'] ?? '';
  await graph.invoke(
    { messages: [{ role: 'user', content: 'Hello' }] },
    { runId: run_id, metadata: { thread_id: 'thread-1' } },
  );
  await awaitAllCallbacks();
  await sleep(500);
  return { trace_id: run_id };
}

const APPS: Readonly<Record<string, () => Promise<unknown>>> = {
  langfuseTracing,
  langfuseOpenai,
  langfuseLangchain,
  langfuseVercelAiSdk,
  langfuseClient,
  langfuseLegacy,
  langsmithTraceable,
  langgraph,
};

const app = APPS[process.argv[2] ?? ''];
if (app === undefined) throw new Error(`no application ${process.argv[2] ?? ''}`);
process.stdout.write(`${JSON.stringify(await app())}\n`);
