// A user's application as a separate process: the real openai package under a real instrumentation,
// or the Vercel AI SDK with its telemetry, and a real exporter that reads its endpoint and key from
// the environment. Prints the id of its trace.
//
// Arguments: openinference | openllmetry | ai | ai-legacy | ai-context, then json | proto. UPSTREAM_URL is the
// address of the models.
import { createOpenAI } from '@ai-sdk/openai';
import { LegacyOpenTelemetry, OpenTelemetry } from '@ai-sdk/otel';
import { OpenAIInstrumentation as OpenInference } from '@arizeai/openinference-instrumentation-openai';
import { context, trace } from '@opentelemetry/api';
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtoExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { OpenAIInstrumentation as OpenLlmetry } from '@traceloop/instrumentation-openai';
import { embed, generateText, isStepCount, registerTelemetry, rerank, tool } from 'ai';
import { MockRerankingModelV4 } from 'ai/test';
import OpenAI from 'openai';
import { z } from 'zod';

const [library = '', encoding = ''] = process.argv.slice(2);
const baseURL = process.env['UPSTREAM_URL'] ?? '';
const provider = new NodeTracerProvider({
  spanProcessors: [new BatchSpanProcessor(encoding === 'json' ? new JsonExporter() : new ProtoExporter())],
});
provider.register();
const tracer = provider.getTracer('shop', '1.2.3');

/** Makes two model calls under an agent run whose span repeats their usage. */
async function callOpenAi(instrumentation: OpenInference | OpenLlmetry): Promise<void> {
  instrumentation.setTracerProvider(provider);
  instrumentation.manuallyInstrument(OpenAI);
  const client = new OpenAI({ apiKey: 'none', baseURL });
  for (const question of ['What is the capital of France?', 'And of Italy?'])
    await client.chat.completions.create({
      model: 'gpt-4o-mini',
      temperature: 0.2,
      messages: [
        { role: 'system', content: 'Answer in one word.' },
        { role: 'user', content: question },
      ],
    });
}

/** Runs one generateText: two model calls with a tool call between them. */
async function callAiSdk(): Promise<void> {
  registerTelemetry(library === 'ai' ? new OpenTelemetry({ tracer }) : new LegacyOpenTelemetry({ tracer }));
  const weather = tool({
    description: 'The weather of a city',
    inputSchema: z.object({ city: z.string() }),
    execute: ({ city }) => ({ city, temp: 21 }),
  });
  await generateText({
    model: createOpenAI({ apiKey: 'none', baseURL }).chat('gpt-4o-mini'),
    instructions: 'Answer in one word.',
    prompt: 'How is the weather in the capital of France?',
    tools: { weather },
    stopWhen: isStepCount(3),
  });
}

/** Generates, embeds and reranks with a runtime context that names the session and the user. */
async function callWithContext(): Promise<void> {
  registerTelemetry(new OpenTelemetry({ tracer, runtimeContext: true }));
  const openai = createOpenAI({ apiKey: 'none', baseURL });
  const whose = {
    runtimeContext: { sessionId: 'session-7', userId: 'user-7' },
    telemetry: { includeRuntimeContext: { sessionId: true, userId: true } },
  };
  await generateText({ model: openai.chat('gpt-4o-mini'), prompt: 'Capital of France?', ...whose });
  await embed({ model: openai.embedding('text-embedding-3-small'), value: 'Paris', ...whose });
  const ranking = [{ index: 0, relevanceScore: 0.9 }];
  const model = new MockRerankingModelV4({ doRerank: () => Promise.resolve({ ranking }) });
  await rerank({ model, documents: ['Paris'], query: 'capital', ...whose });
}

const root = tracer.startSpan('handle a question', {
  attributes: {
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.id': 'agent_shop',
    'gen_ai.usage.input_tokens': 200,
    'gen_ai.usage.output_tokens': 40,
    'session.id': 'session-1',
    'user.id': 'user-1',
  },
});
await context.with(trace.setSpan(context.active(), root), async () => {
  if (library === 'openinference') await callOpenAi(new OpenInference());
  else if (library === 'openllmetry') await callOpenAi(new OpenLlmetry());
  else if (library === 'ai-context') await callWithContext();
  else await callAiSdk();
});
root.end();
await provider.shutdown();
process.stdout.write(`${root.spanContext().traceId}\n`);
