// The unmodified Python packages of Langfuse, LangSmith, LangGraph and OpenTelemetry's gRPC exporter
// against a service. Each test runs where python3 has its packages.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { missingInPython, runPython } from '../../support/python.ts';
import { say, startUpstream, type TestUpstream } from '../../support/upstream.ts';
import { eventually } from '../../support/wait.ts';
import { call, KEY, type TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';
import { type Data, named, traceOf, treeOf } from './an_app.ts';

let service: TestService;
let upstream: TestUpstream;
let api: TestApi;

beforeAll(async () => {
  upstream = await startUpstream();
  upstream.behave(say('Good day'));
  service = await TestService.start({ worker: { SERVICE_TRACE_GRACE_MS: '50' }, api: { grpc: true } });
  api = await service.startApi();
}, 120_000);
afterAll(async () => {
  await service.close();
  await upstream.close();
});

const kindOf = (span: Data): unknown => (span['attributes'] as Data)['span_kind'];
const langsmith = () => ({
  LANGSMITH_TRACING: 'true',
  LANGSMITH_ENDPOINT: `${api.url}/langsmith`,
  LANGSMITH_API_KEY: KEY,
});
async function scored(trace_id: unknown, value: unknown): Promise<void> {
  await eventually(async () => {
    const { json } = await call(api, 'GET', `/v1/scores?trace_id=${String(trace_id)}`);
    const scores = (json?.['data'] as Data[] | undefined) ?? [];
    return scores.some((score) => score['name'] === 'helpful' && score['value'] === value);
  });
}

/** Declares a test that is skipped, with the reason in its title, where a package is missing. */
function pythonTest(title: string, packages: readonly string[], run: () => Promise<void>): void {
  const reason = missingInPython(packages);
  test.skipIf(reason !== null)(reason === null ? title : `${title} (skipped: ${reason})`, run, 180_000);
}

pythonTest('Langfuse: tracing arrives as one tree; scores and prompts by label work', ['langfuse'], async () => {
  const { trace_id, version, texts } = await runPython('langfuse_app', {
    LANGFUSE_BASE_URL: api.url,
    LANGFUSE_PUBLIC_KEY: 'anything',
    LANGFUSE_SECRET_KEY: KEY,
  });
  expect([version, texts]).toEqual([1, ['Hi Ada', 'Hello Ada']]);
  const tree = await treeOf(api, trace_id, 4);
  expect(tree.map(({ name }) => name).sort()).toEqual(['answer-question', 'ask-model', 'check', 'look-up']);
  const asked = named(tree, 'ask-model');
  expect(asked).toMatchObject({
    parent_span_id: named(tree, 'answer-question')['span_id'],
    model: 'gpt-4o-mini',
    input_tokens: 100,
    output_tokens: 20,
    response: 'On the shelf',
  });
  expect(await traceOf(api, 'session_id=session-1')).toMatchObject({ trace_id, user_id: 'user-1', tags: ['beta'] });
  expect([kindOf(asked), kindOf(named(tree, 'look-up'))]).toEqual(['llm', 'tool']);
  // 60 uncached and 40 cached tokens in, 20 out, at 0.15, 0.075 and 0.6 USD for a million.
  expect(asked['cost_usd']).toBeCloseTo((60 * 0.15 + 40 * 0.075 + 20 * 0.6) / 1e6, 12);
  expect(named(tree, 'check')).toMatchObject({ outcome: 'error', attributes: { error_message: 'no stock' } });
  await scored(trace_id, true);
});

pythonTest('LangSmith: traceable arrives as one tree with usage, session and feedback', ['langsmith'], async () => {
  const { trace_id } = await runPython('langsmith_app', langsmith());
  const tree = await treeOf(api, trace_id, 3);
  const agent = named(tree, 'agent');
  expect(agent).toMatchObject({ parent_span_id: null, tags: ['beta'] });
  expect(String(agent['prompt'])).toContain('How many?');
  expect(named(tree, 'ask-model')).toMatchObject({
    parent_span_id: agent['span_id'],
    model: 'gpt-4o-mini',
    input_tokens: 100,
    output_tokens: 20,
    response: 'It is 1',
  });
  expect(kindOf(named(tree, 'look-up'))).toBe('tool');
  expect(await traceOf(api, 'session_id=session-4')).toMatchObject({ trace_id, user_id: 'user-4' });
  await scored(trace_id, 1);
});

pythonTest(
  'LangGraph: arrives with its node and one model call, by environment variables alone',
  ['langgraph', 'langchain_openai', 'langsmith'],
  async () => {
    const { trace_id } = await runPython('langgraph_app', { ...langsmith(), UPSTREAM_URL: upstream.url });
    const tree = await treeOf(api, trace_id, 3);
    expect(tree).toHaveLength(3);
    const calls = tree.filter((span) => kindOf(span) === 'llm');
    expect(calls).toMatchObject([{ model: 'gpt-4o-mini', response: 'Good day', input_tokens: 100, output_tokens: 20 }]);
    const node = named(tree, 'agent');
    expect(calls[0]?.['parent_span_id']).toBe(node['span_id']);
    expect(node['parent_span_id']).toBe(trace_id);
  },
);

pythonTest(
  'the OTLP exporter for gRPC delivers spans with their tokens',
  ['opentelemetry.sdk', 'opentelemetry.exporter.otlp.proto.grpc'],
  async () => {
    const { trace_id } = await runPython('otlp_grpc_app', {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${api.grpcPort}`,
      OTEL_EXPORTER_OTLP_INSECURE: 'true',
      OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer%20${KEY}`,
    });
    expect(await treeOf(api, trace_id, 1)).toMatchObject([
      { name: 'answer', model: 'gpt-4o-mini', input_tokens: 100, output_tokens: 20, attributes: { span_kind: 'llm' } },
    ]);
  },
);
