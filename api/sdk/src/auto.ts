// `node --import @millrace/sdk/auto app.mjs`: sets up tracing without a change of the application,
// with those known instrumentations that the application has installed. An instrumentation patches
// what is loaded by require() itself; what the application loads by import is another copy of the
// library, which is patched here before the application begins.
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { init, type Instrumentation } from './init.ts';

interface Known {
  instrumentation: string;
  exported: string;
  /** Module that the instrumentation patches, and the export that it takes; the whole module without one. */
  library: string;
  patched?: string;
}

const OPENAI = { exported: 'OpenAIInstrumentation', library: 'openai', patched: 'default' };
const ANTHROPIC = { exported: 'AnthropicInstrumentation', library: '@anthropic-ai/sdk', patched: 'default' };
const LANGCHAIN = { exported: 'LangChainInstrumentation', library: '@langchain/core/callbacks/manager' };
const KNOWN: readonly Known[] = [
  { instrumentation: '@arizeai/openinference-instrumentation-openai', ...OPENAI },
  { instrumentation: '@arizeai/openinference-instrumentation-anthropic', ...ANTHROPIC },
  { instrumentation: '@arizeai/openinference-instrumentation-langchain', ...LANGCHAIN },
  { instrumentation: '@traceloop/instrumentation-openai', ...OPENAI },
  { instrumentation: '@traceloop/instrumentation-anthropic', ...ANTHROPIC },
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

/** Returns a module as `import` finds it; null if it is not installed beside this package. */
async function imported(name: string): Promise<Record<string, unknown> | null> {
  try {
    return (await import(name)) as Record<string, unknown>;
  } catch {
    return null;
  }
}

/** Returns one instrumentation of each library, so that no call is traced twice. */
async function instrumentationsInstalled(): Promise<Map<Known, Instrumentation>> {
  const found = new Map<Known, Instrumentation>();
  for (const known of KNOWN) {
    if ([...found.keys()].some(({ library }) => library === known.library)) continue;
    const made = (await installed(known.instrumentation))?.[known.exported];
    if (typeof made === 'function') found.set(known, new (made as new () => Instrumentation)());
  }
  return found;
}

/** Patches the copy of a library that `import` loads. */
async function patchImported({ library, patched }: Known, instrumentation: Instrumentation): Promise<void> {
  const whole = await imported(library);
  const target = patched === undefined ? whole : whole?.[patched];
  if (target === null || target === undefined) return;
  try {
    instrumentation.manuallyInstrument?.(target);
  } catch (error) {
    process.emitWarning(`Millrace: ${library} is not traced: ${String(error)}`);
  }
}

const instrumentations = await instrumentationsInstalled();
init({ instrumentations: [...instrumentations.values()] });
for (const [known, instrumentation] of instrumentations) await patchImported(known, instrumentation);
// The Vercel AI SDK from version 7 on has no instrumentation: it takes a listener.
const [ai, otel] = [await installed('ai'), await installed('@ai-sdk/otel')];
if (typeof ai?.['registerTelemetry'] === 'function' && typeof otel?.['OpenTelemetry'] === 'function')
  (ai['registerTelemetry'] as (listener: unknown) => void)(
    new (otel['OpenTelemetry'] as new (options: object) => unknown)({ runtimeContext: true, usage: true }),
  );
