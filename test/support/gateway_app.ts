// A user's application as a separate process: the openai package, with its calls traced by
// OpenInference and its HTTP requests by OpenTelemetry's instrumentation of undici, which sends the
// trace along. Makes one call, prints the id of its trace, and exports its spans when its standard
// input ends. Settings: OPENAI_BASE_URL, OPENAI_API_KEY, and the standard variables of the exporter.
import { OpenAIInstrumentation } from '@arizeai/openinference-instrumentation-openai';
import { context, trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici';
import { BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { text } from 'node:stream/consumers';
import OpenAI from 'openai';

/** Nothing is exported before the end, unless the process lives longer than this. */
const EXPORT_MS = 600_000;

const provider = new NodeTracerProvider({
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter(), { scheduledDelayMillis: EXPORT_MS })],
});
provider.register();
// The exporter's own requests are no part of the application.
const undici = new UndiciInstrumentation({ ignoreRequestHook: ({ path }) => path.includes('/v1/otlp/') });
undici.setTracerProvider(provider);
const openinference = new OpenAIInstrumentation();
openinference.setTracerProvider(provider);
openinference.manuallyInstrument(OpenAI);

const root = provider.getTracer('shop').startSpan('handle a question');
await context.with(trace.setSpan(context.active(), root), () =>
  new OpenAI({ maxRetries: 0 }).chat.completions.create({
    model: 'gpt-4o-mini',
    messages: [{ role: 'user', content: 'Capital of France?' }],
  }),
);
root.end();
process.stdout.write(`${root.spanContext().traceId}\n`);
await text(process.stdin);
await provider.shutdown();
