// millrace import, from its tarball, of files that other tools write: OTLP JSON lines by OpenTelemetry's
// own serializer, observations of Langfuse and runs of LangSmith, against a real service.
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { gzipSync } from 'node:zlib';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { context, trace } from '@opentelemetry/api';
import { describe, expect, test } from 'vitest';
import { toldEvents } from '../../support/told.ts';
import { eventually } from '../../support/wait.ts';
import { makeKey } from '../a_tenant.ts';
import { api, type Data, fileOf, millrace, modelCall, newFolder, service, startMillrace, tenant } from './a_cli.ts';

/** The serializer with which OpenTelemetry's exporter writes JSON. */
const exporter = createRequire(import.meta.url).resolve('@opentelemetry/exporter-trace-otlp-http');
const { JsonTraceSerializer } = createRequire(exporter)('@opentelemetry/otlp-transformer') as {
  JsonTraceSerializer: { serializeRequest: (spans: readonly ReadableSpan[]) => Uint8Array };
};

const DAY = 86_400_000;
/** One time for all records of the file, so that differences between them are exact. */
const NOW = Date.now();
const daysAgo = (days: number): number => NOW - days * DAY;
const iso = (days: number, ms = 0): string => new Date(daysAgo(days) + ms).toISOString();

/** Returns a line as the Collector's file exporter writes it: an agent with some model calls. */
function exportOf(calls: number, days: number): { line: string; trace_id: string } {
  const spans = new InMemorySpanExporter();
  const tracer = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }).getTracer('test');
  const startTime = daysAgo(days);
  const root = tracer.startSpan('agent', { startTime, attributes: { 'session.id': 's-1' } });
  for (let at = 0; at < calls; at += 1)
    tracer
      .startSpan(
        'chat',
        {
          startTime: startTime + at,
          attributes: {
            'gen_ai.operation.name': 'chat',
            'gen_ai.request.model': 'gpt-4o-mini',
            'gen_ai.usage.input_tokens': 100,
            'gen_ai.usage.output_tokens': 20,
            'gen_ai.input.messages': JSON.stringify([{ role: 'user', parts: [{ type: 'text', content: 'hello' }] }]),
          },
        },
        trace.setSpan(context.active(), root),
      )
      .end(startTime + at + 10);
  root.end(startTime + 1000);
  const body = JsonTraceSerializer.serializeRequest(spans.getFinishedSpans());
  return { line: Buffer.from(body).toString(), trace_id: root.spanContext().traceId };
}

async function treeOf(trace_id: string): Promise<Data[]> {
  const { json } = await tenant.get(`/v1/traces/${trace_id}/tree`);
  return (json?.['data'] as { spans: Data[] }).spans;
}

const usedTokens = async (): Promise<number> => {
  const { json } = await tenant.get('/v1/budgets');
  return (json?.['data'] as { tokens: { used: number } }).tokens.used;
};

test('a file of the Collector is imported twice and is there once, asks no budget and fires no event', async () => {
  await tenant.call('PUT', `/orgs/${tenant.org}/budget`, { body: { tokens: { hard_limit: 100 } } });
  await tenant.ingest('chatcompletion', modelCall({ trace_id: 'today' }));
  await tenant.landed(1);
  const exports = [exportOf(2, 60), exportOf(3, 90)];
  const file = fileOf([...exports.map(({ line }) => line), { resourceMetrics: [] }, '']);
  for (let times = 0; times < 2; times += 1) {
    const { code, records, err } = await millrace(['import', file]);
    expect([code, records, err]).toEqual([0, [{ lines: 3, accepted: 7, rejected: 0, skipped: 1 }], '']);
    await tenant.landed(8);
  }
  expect(await treeOf(exports[0]?.trace_id ?? '')).toMatchObject([
    { name: 'agent', parent_span_id: null },
    { name: 'chat', model: 'gpt-4o-mini', input_tokens: 100, output_tokens: 20 },
    { name: 'chat', model: 'gpt-4o-mini', input_tokens: 100, output_tokens: 20 },
  ]);
  expect(await usedTokens()).toBe(120);
  const { json } = await tenant.get('/v1/cost/summary?days=100');
  const { by_day } = json?.['data'] as { by_day: { date: string; tokens: number }[] };
  expect(by_day.find(({ date }) => date === iso(60).slice(0, 10))).toMatchObject({ tokens: 240 });
  const told = (await toldEvents(api.log, tenant.org)).map(({ payload }) => JSON.parse(payload) as Data);
  const imported = new Set(exports.map(({ trace_id }) => trace_id));
  expect(told.filter(({ trace_id }) => imported.has(String(trace_id)))).toEqual([]);
});

test('a line beyond the size of a request is sent in parts, from a file compressed with gzip', async () => {
  const { line, trace_id } = exportOf(3000, 30);
  expect(line.length).toBeGreaterThan(1024 * 1024);
  const file = `${newFolder()}/lines.jsonl.gz`;
  writeFileSync(file, gzipSync(`${line}\n`));
  expect((await millrace(['import', file])).records).toEqual([{ lines: 1, accepted: 3001, rejected: 0, skipped: 0 }]);
  await tenant.landed(3001);
  const { json } = await tenant.get(`/v1/traces/${trace_id}`);
  expect(json?.['data']).toMatchObject({ span_count: 3001, input_tokens: 300_000 });
});

describe('observations of Langfuse', () => {
  const TRACE = '0af7651916cd43dd8448eb211c80319c';
  const generation = {
    id: 'b7ad6b7169203331',
    traceId: TRACE,
    type: 'GENERATION',
    name: 'ask',
    parentObservationId: '00f067aa0ba902b7',
    startTime: iso(10, 5),
    endTime: iso(10, 905),
    completionStartTime: iso(10, 205),
    model: 'gpt-4o-mini',
    modelParameters: { temperature: 0 },
    input: [{ role: 'user', content: 'Capital of France?' }],
    output: 'Paris',
    usageDetails: { input: 80, input_cached_tokens: 20, output: 10, total: 110 },
    costDetails: { input: 0.1, output: 0.2, total: 0.3 },
    promptName: 'greeting',
    promptVersion: 3,
    metadata: { customer: 'acme' },
    level: 'DEFAULT',
    environment: 'production',
  };
  const root = {
    id: '00f067aa0ba902b7',
    traceId: TRACE,
    type: 'SPAN',
    name: 'answer',
    startTime: iso(10),
    endTime: iso(10, 1000),
    input: 'Where?',
    level: 'ERROR',
    statusMessage: 'too slow',
  };

  test('as the API returns them become a tree with models, tokens, costs, prompts and texts', async () => {
    const { code, records } = await millrace(['import', fileOf([root, generation])]);
    expect([code, records]).toEqual([0, [{ lines: 2, accepted: 2, rejected: 0, skipped: 0 }]]);
    await tenant.landed(2);
    expect(await treeOf(TRACE)).toMatchObject([
      { name: 'answer', outcome: 'error', attributes: { error_message: 'too slow' } },
      {
        name: 'ask',
        parent_span_id: '00f067aa0ba902b7',
        model: 'gpt-4o-mini',
        input_tokens: 100,
        output_tokens: 10,
        cost_usd: 0.3,
        prompt: JSON.stringify([{ role: 'user', content: 'Capital of France?' }]),
        response: 'Paris',
        attributes: { metadata: { customer: 'acme' }, prompt_name: 'greeting', span_kind: 'llm' },
      },
    ]);
    const { json } = await tenant.get(`/v1/traces/${TRACE}/spans/b7ad6b7169203331`);
    expect(json?.['data']).toMatchObject({ first_token_ms: 200, prompt_version: '3', cached_input_tokens: 20 });
  });

  test('below their trace carry its session, user and tags; older ids and usage are read', async () => {
    const { traceId: _, usageDetails: __, ...older } = generation;
    const nested = { ...older, id: 'gen-1', parentObservationId: null, usage: { input: 7, output: 3, unit: 'TOKENS' } };
    const trace = { id: 'my-trace', timestamp: iso(10), name: 'chat', userId: 'u-1', sessionId: 's-1', tags: ['beta'] };
    await millrace(['import', fileOf([{ ...trace, observations: [nested] }])]);
    await tenant.landed(1);
    const { json } = await tenant.get('/v1/traces?user_id=u-1&session_id=s-1&tags=beta');
    expect(json?.['data']).toMatchObject([{ root_span_name: 'ask', input_tokens: 7, output_tokens: 3 }]);
  });

  test('as exports to blob storage write them are read', async () => {
    const line = {
      id: 'b7ad6b7169203331',
      trace_id: TRACE,
      type: 'GENERATION',
      name: 'ask',
      start_time: iso(10).replace('T', ' ').replace('Z', '000'),
      end_time: iso(10, 500).replace('T', ' ').replace('Z', '000'),
      provided_model_name: 'gpt-4o-mini',
      usage_details: { input: '12', output: '4' },
      cost_details: {},
      input: 'Hello',
      output: 'Hi',
      parent_observation_id: '',
    };
    await millrace(['import', fileOf([line])]);
    await tenant.landed(1);
    expect(await treeOf(TRACE)).toMatchObject([
      {
        model: 'gpt-4o-mini',
        input_tokens: 12,
        output_tokens: 4,
        duration_ms: 500,
        started_at: `${line.start_time.slice(0, 23).replace(' ', 'T')}Z`,
      },
    ]);
  });
});

describe('runs of LangSmith', () => {
  const ID = '0199a1c2-6e40-7000-8000-000000000001';
  const run = (more: Data = {}): Data => ({
    id: ID,
    trace_id: ID,
    name: 'chain',
    run_type: 'chain',
    start_time: iso(60).replace('Z', ''),
    end_time: iso(60, 1000).replace('Z', ''),
    inputs: { question: 'Where?' },
    outputs: { answer: 'Here' },
    extra: { metadata: { session_id: 's-1', user_id: 'u-1' } },
    tags: ['beta'],
    session_id: '3d1f7f0e-0000-4000-8000-000000000000',
    ...more,
  });
  const llm = run({
    id: '0199a1c2-6e40-7000-8000-000000000002',
    parent_run_id: ID,
    name: 'ChatOpenAI',
    run_type: 'llm',
    inputs: { messages: [{ role: 'user', content: 'Where?' }] },
    outputs: { choices: [{ message: { role: 'assistant', content: 'Here' } }] },
    extra: { metadata: { ls_model_name: 'gpt-4o-mini', ls_provider: 'openai' } },
    prompt_tokens: 30,
    completion_tokens: 5,
  });

  test('are imported with their ids, twice and once there, also one that never ended', async () => {
    const open = run({ id: '0199a1c2-6e40-7000-8000-000000000003', parent_run_id: ID, name: 'open', end_time: null });
    const file = fileOf([run(), llm, open]);
    for (let times = 0; times < 2; times += 1) {
      const { code, records } = await millrace(['import', file]);
      expect([code, records]).toEqual([0, [{ lines: 3, accepted: 3, rejected: 0, skipped: 0 }]]);
      await tenant.landed(3);
    }
    const spans = await treeOf(ID);
    expect(spans.map(({ name }) => name).sort()).toEqual(['ChatOpenAI', 'chain', 'open']);
    expect(spans.find(({ name }) => name === 'ChatOpenAI')).toMatchObject({
      model: 'gpt-4o-mini',
      input_tokens: 30,
      output_tokens: 5,
      response: 'Here',
      parent_span_id: ID,
    });
    expect(await usedTokens()).toBe(0);
  });

  test('that the service refuses are named, and the others of their batch are stored', async () => {
    const bad = run({ id: '0199a1c2-6e40-7000-8000-000000000009', trace_id: 'not a trace id!' });
    const old = run({ id: '0199a1c2-6e40-7000-8000-000000000008', start_time: iso(500), end_time: iso(500) });
    const { code, records, err } = await millrace(['import', fileOf([run(), bad, old, '{broken', llm, '{"a":1}'])]);
    expect([code, records]).toEqual([3, [{ lines: 6, accepted: 2, rejected: 4, skipped: 0 }]]);
    expect(err).toMatch(/from line 2: .*trace_id/);
    expect(err).toMatch(/from line 3: began more than 400 days ago/);
    expect(err).toMatch(/from line 4: the line is not JSON/);
    expect(err).toMatch(/from line 6: the line looks like none of otlp, langfuse, langsmith/);
    await tenant.landed(2);
  });
});

test('spans that are too old are counted and named', async () => {
  const { code, records, err } = await millrace(['import', fileOf([exportOf(1, 500).line, exportOf(1, 5).line])]);
  expect([code, records]).toEqual([3, [{ lines: 2, accepted: 2, rejected: 2, skipped: 0 }]]);
  expect(err).toContain('more than 400 days');
});

test('a key without the scope imports nothing and ends with code 3', async () => {
  const key = (await makeKey(api, tenant.org, ['ingest:write']))['X-Org-Api-Key'] ?? '';
  const { code, err } = await millrace(['import', fileOf([exportOf(1, 5).line])], { MILLRACE_API_KEY: key });
  expect([code, err]).toEqual([3, expect.stringContaining('ingest:backfill')]);
  expect(err).toContain('--from-line 1');
});

test('after a kill the file is imported again, and every span is there once', async () => {
  const lines = Array.from({ length: 40 }, () => exportOf(200, 15).line);
  const file = fileOf(lines);
  const child = startMillrace(['import', file]);
  const ended = once(child, 'exit');
  const stored = `SELECT count() FROM spans WHERE org_id = '${tenant.org}'`;
  await eventually(async () => Number(await service.database.run(stored)) > 0, { what: 'the first spans' });
  child.kill('SIGKILL');
  await ended;
  const { code, records } = await millrace(['import', file]);
  expect([code, records]).toEqual([0, [{ lines: 40, accepted: 40 * 201, rejected: 0, skipped: 0 }]]);
  await tenant.landed(40 * 201);
});
