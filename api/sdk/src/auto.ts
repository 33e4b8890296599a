// `node --import @millrace/sdk/auto app.mjs`: sets up tracing without a change of the application,
// with those known instrumentations that the application has installed.
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { init, type Instrumentation } from './init.ts';

/** Packages and the names of their instrumentations. */
const KNOWN: readonly (readonly [string, string])[] = [
  ['@arizeai/openinference-instrumentation-openai', 'OpenAIInstrumentation'],
  ['@arizeai/openinference-instrumentation-anthropic', 'AnthropicInstrumentation'],
  ['@arizeai/openinference-instrumentation-langchain', 'LangChainInstrumentation'],
  ['@traceloop/instrumentation-openai', 'OpenAIInstrumentation'],
  ['@traceloop/instrumentation-anthropic', 'AnthropicInstrumentation'],
];

const ofApplication = createRequire(path.join(process.cwd(), 'package.json'));

/** Returns a package of the application; null if it is not installed. */
async function installed(name: string): Promise<Record<string, unknown> | null> {
  try {
    return (await import(pathToFileURL(ofApplication.resolve(name)).href)) as Record<string, unknown>;
  } catch {
    return null;
  }
}

/** Returns one instrumentation of each library, so that no call is traced twice. */
async function instrumentationsInstalled(): Promise<Instrumentation[]> {
  const found = new Map<string, Instrumentation>();
  for (const [name, exported] of KNOWN) {
    if (found.has(exported)) continue;
    const made = (await installed(name))?.[exported];
    if (typeof made === 'function') found.set(exported, new (made as new () => Instrumentation)());
  }
  return [...found.values()];
}

const instrumentations = await instrumentationsInstalled();
init({ instrumentations });
// The Vercel AI SDK from version 7 on has no instrumentation: it takes a listener.
const [ai, otel] = [await installed('ai'), await installed('@ai-sdk/otel')];
if (typeof ai?.['registerTelemetry'] === 'function' && typeof otel?.['OpenTelemetry'] === 'function')
  (ai['registerTelemetry'] as (listener: unknown) => void)(
    new (otel['OpenTelemetry'] as new (options: object) => unknown)({ runtimeContext: true, usage: true }),
  );
