// The types of the SDK fit the libraries that its README names: what type-checks here does so in an
// application too.
import { AnthropicInstrumentation } from '@arizeai/openinference-instrumentation-anthropic';
import { LangChainInstrumentation } from '@arizeai/openinference-instrumentation-langchain';
import { OpenAIInstrumentation } from '@arizeai/openinference-instrumentation-openai';
import type { TracingProcessor } from '@openai/agents';
import { expect, test } from 'vitest';
import type { Instrumentation } from '../../../api/sdk/src/init.ts';
import { MillraceTracingProcessor } from '../../../api/sdk/src/openai_agents.ts';

test('init takes the instrumentations of the recipes, and each patches what import has loaded', () => {
  const instrumentations: Instrumentation[] = [
    new OpenAIInstrumentation(),
    new AnthropicInstrumentation(),
    new LangChainInstrumentation(),
  ];
  for (const instrumentation of instrumentations) {
    expect(instrumentation).toHaveProperty('manuallyInstrument', expect.any(Function));
    instrumentation.disable();
  }
});

test('the OpenAI Agents SDK takes the tracing processor', async () => {
  const processor: TracingProcessor = new MillraceTracingProcessor();
  await expect(processor.forceFlush()).resolves.toBeUndefined();
  await expect(processor.shutdown()).resolves.toBeUndefined();
});
