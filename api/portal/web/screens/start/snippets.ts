// The ways to send the first trace, with the address and the key filled in. Pure; each text is what
// a person pastes into a shell or a program as it is.

export interface SnippetValues {
  /** Origin of the service, for example http://127.0.0.1:8080. */
  url: string;
  org_id: string;
  /** API key, or the placeholder that stands for it. */
  key: string;
}

export interface Snippet {
  id: string;
  title: string;
  /** One sentence: what the snippet needs and does. */
  about: string;
  blocks: readonly { language: string; text: string }[];
}

/** Written where no key was made yet. */
export const KEY_PLACEHOLDER = 'sk_svc_…';
/** Scopes of the key that the page makes: sending, and calls through the gateway. */
export const KEY_SCOPES = ['ingest:write', 'gateway:invoke'] as const;

/** Returns the snippets in the order of the tabs. */
export function snippetsFor(values: SnippetValues): Snippet[] {
  return [curl(values), openTelemetry(values), openAi(values), aiSdk(values), langChain(values)];
}

function curl({ url, org_id, key }: SnippetValues): Snippet {
  return {
    id: 'curl',
    title: 'curl',
    about: 'Sends one trace of two spans, without any library.',
    blocks: [
      {
        language: 'sh',
        text: `curl -s ${url}/orgs/${org_id}/ingest/custom \\
  -H 'X-Org-Api-Key: ${key}' -H 'Content-Type: application/json' -d '{
  "events": [
    {"name": "plan", "outcome": "success", "duration_ms": 340,
     "trace_id": "run-1", "span_id": "a", "attributes": {"agent_id": "planner"}},
    {"name": "web.search", "outcome": "success", "duration_ms": 300,
     "trace_id": "run-1", "parent_span_id": "a",
     "attributes": {"span_kind": "tool",
                    "input": "millrace", "output": "a channel of water"}}
  ]}'`,
      },
    ],
  };
}

function variables({ url, key }: SnippetValues): string {
  return `export OTEL_EXPORTER_OTLP_ENDPOINT=${url}/v1/otlp
export OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20${key}"
export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf`;
}

function openTelemetry(values: SnippetValues): Snippet {
  return {
    id: 'otel',
    title: 'OpenTelemetry',
    about:
      'Any OTLP exporter sends with these variables. Model calls of the GenAI conventions, OpenInference and OpenLLMetry are recognized.',
    blocks: [{ language: 'sh', text: variables(values) }],
  };
}

function openAi({ url, key }: SnippetValues): Snippet {
  return {
    id: 'openai',
    title: 'OpenAI SDK',
    about:
      'Every call through the gateway becomes a trace. The service needs the address of a model provider: SERVICE_LLM_BASE_URL.',
    blocks: [
      {
        language: 'ts',
        text: `import OpenAI from 'openai';

const client = new OpenAI({ apiKey: '${key}', baseURL: '${url}/v1' });
const answer = await client.chat.completions.create({
  model: 'gpt-4o-mini',
  messages: [{ role: 'user', content: 'What is a millrace?' }],
});
console.log(answer.choices[0]?.message.content);`,
      },
      {
        language: 'python',
        text: `from openai import OpenAI

client = OpenAI(api_key="${key}", base_url="${url}/v1")
answer = client.chat.completions.create(
    model="gpt-4o-mini",
    messages=[{"role": "user", "content": "What is a millrace?"}],
)
print(answer.choices[0].message.content)`,
      },
    ],
  };
}

function aiSdk(values: SnippetValues): Snippet {
  return {
    id: 'ai-sdk',
    title: 'Vercel AI SDK',
    about: 'The telemetry of the AI SDK 7, sent by an OpenTelemetry exporter.',
    blocks: [
      { language: 'sh', text: variables(values) },
      {
        language: 'ts',
        text: `import { OpenTelemetry } from '@ai-sdk/otel';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { registerTelemetry } from 'ai';

const provider = new NodeTracerProvider({
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
});
provider.register();
registerTelemetry(new OpenTelemetry({ tracer: provider.getTracer('my-app') }));
// Before the process ends: await provider.shutdown();`,
      },
    ],
  };
}

function langChain(values: SnippetValues): Snippet {
  return {
    id: 'langchain',
    title: 'LangChain',
    about: 'OpenInference instruments LangChain and LangGraph; the exporter reads the variables.',
    blocks: [
      {
        language: 'sh',
        text: `pip install openinference-instrumentation-langchain \\
  opentelemetry-sdk opentelemetry-exporter-otlp-proto-http
${variables(values)}`,
      },
      {
        language: 'python',
        text: `from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
LangChainInstrumentor().instrument(tracer_provider=provider)`,
      },
    ],
  };
}
