// OTLP logs and metrics over HTTP: real exporters, retries, partial success, coding agents and what
// they cost.
import { SeverityNumber } from '@opentelemetry/api-logs';
import { context, trace, TraceFlags } from '@opentelemetry/api';
import { OTLPLogExporter } from '@opentelemetry/exporter-logs-otlp-proto';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { InMemoryLogRecordExporter, LoggerProvider, SimpleLogRecordProcessor } from '@opentelemetry/sdk-logs';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  anyValue,
  asProtobuf,
  decodeAnswer,
  exportOf,
  keyValues,
  logsAsJson,
  logsAsProtobuf,
  type OtlpObject,
  otlpSpan,
} from '../../support/otlp.ts';
import { eventually } from '../../support/wait.ts';
import { AGENTS } from '../../unit/otlp/log_records.ts';
import { call, KEY, type TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';

type Data = Record<string, unknown>;
const PROTOBUF = 'application/x-protobuf';
const JSON_TYPE = 'application/json';

let service: TestService;
let api: TestApi;

beforeAll(async () => {
  service = await TestService.start({ worker: { SERVICE_TRACE_GRACE_MS: '50' } });
  api = await service.startApi();
}, 120_000);
afterAll(async () => {
  await service.close();
});

async function post(path: string, body: Buffer, type: string, headers: Record<string, string> = {}) {
  const response = await fetch(api.url + path, {
    method: 'POST',
    headers: { Authorization: `Bearer ${KEY}`, 'Content-Type': type, ...headers },
    body: new Uint8Array(body),
  });
  return { status: response.status, bytes: new Uint8Array(await response.arrayBuffer()) };
}
const jsonOf = ({ bytes }: { bytes: Uint8Array }): Data => JSON.parse(Buffer.from(bytes).toString()) as Data;

async function treeOf(trace_id: string, spans: number): Promise<Data[]> {
  let tree: Data[] = [];
  await eventually(
    async () => {
      const { json } = await call(api, 'GET', `/v1/traces/${trace_id}/tree`);
      tree = ((json?.['data'] as Data | undefined)?.['spans'] ?? []) as Data[];
      return tree.length >= spans;
    },
    { what: `the trace ${trace_id}` },
  );
  return tree;
}

function record(index: number, over: OtlpObject = {}): OtlpObject {
  return {
    traceId: 'b1'.repeat(16),
    spanId: (0xeee19b7ec3000000n + BigInt(index)).toString(16),
    timeUnixNano: (BigInt(Date.now()) * 1_000_000n).toString(),
    severityNumber: 9,
    severityText: 'INFO',
    body: anyValue(`record ${index}`),
    attributes: keyValues({ 'event.name': `shop.step_${index}` }),
    ...over,
  };
}

test('evaluation results of spans and of log records are scores of their trace, once, with the source otel', async () => {
  const trace_id = 'e7'.repeat(16);
  const [ofSpan, ofRecord] = ['Relevance', 'Tone'].map((name) =>
    keyValues({ 'gen_ai.evaluation.name': name, 'gen_ai.evaluation.score.value': 0.5 }),
  );
  const result = 'gen_ai.evaluation.result';
  const at = (BigInt(Date.now()) * 1_000_000n).toString();
  const span = otlpSpan(7, {}, { traceId: trace_id, events: [{ timeUnixNano: at, name: result, attributes: ofSpan }] });
  const log = record(7, { traceId: trace_id, spanId: span['spanId'], eventName: result, attributes: ofRecord });
  for (let times = 0; times < 2; times++) {
    expect((await post('/v1/logs', logsAsProtobuf([log]), PROTOBUF)).status).toBe(200);
    expect((await post('/v1/traces', asProtobuf(exportOf([span])), PROTOBUF)).status).toBe(200);
  }
  let scores: Data[] = [];
  const read = async (query: string): Promise<Data[]> =>
    ((await call(api, 'GET', `/v1/scores?trace_id=${trace_id}${query}`)).json?.['data'] ?? []) as Data[];
  await eventually(
    async () => {
      scores = await read('&source=otel');
      return scores.length >= 2;
    },
    { what: 'the scores' },
  );
  const score = { span_id: span['spanId'], value: 0.5, source: 'otel', author: { type: 'otel' } };
  expect(scores.toSorted((a, b) => String(a['name']).localeCompare(String(b['name'])))).toMatchObject([
    { name: 'Relevance', ...score },
    { name: 'Tone', ...score },
  ]);
  expect([await read('&source=user'), await read('&source=judge')]).toEqual([[], []]);
});

test('records sent again, in another encoding or compressed, are one child of their span', async () => {
  const records = [record(1), record(2)];
  const sent: [Buffer, string, Record<string, string>, string][] = [
    [logsAsJson(records), JSON_TYPE, {}, '/v1/logs'],
    [logsAsProtobuf(records), PROTOBUF, {}, '/v1/otlp/v1/logs'],
    [gzipSync(logsAsProtobuf(records)), PROTOBUF, { 'Content-Encoding': 'gzip' }, '/v1/logs'],
    [logsAsJson([record(3)]), JSON_TYPE, {}, '/v1/logs'],
  ];
  for (const [body, type, headers, path] of sent) expect((await post(path, body, type, headers)).status).toBe(200);
  const tree = await treeOf('b1'.repeat(16), 3);
  expect(
    tree.map(({ name, parent_span_id, response, attributes }) => [
      name,
      parent_span_id,
      response,
      (attributes as Data)['span_kind'],
    ]),
  ).toEqual([
    ['shop.step_1', 'eee19b7ec3000001', 'record 1', 'event'],
    ['shop.step_2', 'eee19b7ec3000002', 'record 2', 'event'],
    ['shop.step_3', 'eee19b7ec3000003', 'record 3', 'event'],
  ]);
});

test('records without a trace or a session are counted in the answer, and the others are stored', async () => {
  const traceId = 'b2'.repeat(16);
  const records = [record(1, { traceId }), record(2, { traceId: '', spanId: '' })];
  const json = await post('/v1/logs', logsAsJson(records), JSON_TYPE);
  expect([json.status, jsonOf(json)]).toEqual([
    200,
    {
      partialSuccess: {
        rejectedLogRecords: '1',
        errorMessage: expect.stringContaining('log record 1: traceId') as unknown,
      },
    },
  ]);
  const protobuf = await post('/v1/logs', logsAsProtobuf(records), PROTOBUF);
  expect(decodeAnswer(protobuf.bytes, 'rejectedLogRecords')).toMatchObject({
    partialSuccess: { rejectedLogRecords: 1 },
  });
  expect(await treeOf(traceId, 1)).toHaveLength(1);
});

test('the log exporter of OpenTelemetry puts records below the active span', async () => {
  const memory = new InMemoryLogRecordExporter();
  const provider = new LoggerProvider({
    resource: resourceFromAttributes({ 'service.name': 'shop' }),
    processors: [new SimpleLogRecordProcessor({ exporter: memory })],
  });
  const spanContext = { traceId: 'b3'.repeat(16), spanId: 'c3'.repeat(8), traceFlags: TraceFlags.SAMPLED };
  provider.getLogger('shop').emit({
    context: trace.setSpanContext(context.active(), spanContext),
    severityNumber: SeverityNumber.WARN,
    body: { order: 17, lines: ['a', 'b'] },
    eventName: 'shop.checkout',
  });
  const exporter = new OTLPLogExporter({ url: `${api.url}/v1/logs`, headers: { authorization: `Bearer ${KEY}` } });
  const result = await new Promise<{ code: number }>((resolve) => {
    exporter.export(memory.getFinishedLogRecords(), resolve);
  });
  expect(result.code).toBe(0);
  expect(await treeOf(spanContext.traceId, 1)).toMatchObject([
    { name: 'shop.checkout', parent_span_id: spanContext.spanId, response: '{"order":17,"lines":["a","b"]}' },
  ]);
});

test.each(['/v1/metrics', '/v1/otlp/v1/metrics'])('metrics are acknowledged and not stored at %s', async (path) => {
  const metrics = [
    { name: 'a', sum: { dataPoints: [{ asInt: '1' }, { asInt: '2' }] } },
    { name: 'b', histogram: { dataPoints: [{ count: '1' }] } },
    { name: 'c' },
  ];
  const body = Buffer.from(JSON.stringify({ resourceMetrics: [{ scopeMetrics: [{ metrics }] }] }));
  const json = await post(path, body, JSON_TYPE);
  expect([json.status, jsonOf(json)]).toEqual([
    200,
    { partialSuccess: { rejectedDataPoints: '3', errorMessage: expect.stringContaining('not stored') as unknown } },
  ]);
  const empty = await post(path, Buffer.alloc(0), PROTOBUF);
  expect([empty.status, decodeAnswer(empty.bytes, 'rejectedDataPoints')]).toEqual([
    200,
    { partialSuccess: { errorMessage: expect.stringContaining('not stored') as unknown } },
  ]);
  expect((await post(path, Buffer.from('{'), JSON_TYPE)).status).toBe(400);
  expect((await post(path, body, JSON_TYPE, { Authorization: 'Bearer sk_svc_nobody' })).status).toBe(401);
});

test('the metric exporter of OpenTelemetry succeeds', async () => {
  const memory = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter: memory });
  const provider = new MeterProvider({ readers: [reader] });
  provider.getMeter('shop').createCounter('orders').add(3);
  await reader.forceFlush();
  const [metrics] = memory.getMetrics();
  const exporter = new OTLPMetricExporter({
    url: `${api.url}/v1/metrics`,
    headers: { authorization: `Bearer ${KEY}` },
  });
  const code = await new Promise<number>((resolve) => {
    if (metrics === undefined) throw new Error('no metrics');
    exporter.export(metrics, (result) => {
      resolve(result.code);
    });
  });
  expect(code).toBe(0);
  await provider.shutdown();
});

test("the cost of each engineer's agent is known by user, department and agent", async () => {
  const { resource = {}, logs = [] } = AGENTS['claude_code'] ?? {};
  const shift = BigInt(Date.now()) * 1_000_000n - BigInt(String(logs.at(-1)?.['time_unix_nano']));
  const records = logs.map(({ time_unix_nano, attributes, body }) => ({
    timeUnixNano: (BigInt(String(time_unix_nano)) + shift).toString(),
    body: anyValue(body),
    attributes: keyValues({ ...(attributes as Data), 'user.email': 'ada@example.com' }),
  }));
  const trace_id = String((logs[0]?.['attributes'] as Data)['prompt.id']);
  // The exporter sends the prompt first and the rest later.
  for (const part of [records.slice(0, 1), records.slice(1)])
    expect((await post('/v1/logs', logsAsProtobuf(part, resource), PROTOBUF)).status).toBe(200);
  const tree = await treeOf(trace_id, records.length);
  expect(tree[0]).toMatchObject({ name: 'claude_code.user_prompt', parent_span_id: null });
  expect((tree[0]?.['children'] as string[]).length).toBe(records.length - 1);
  await eventually(
    async () => {
      const { json } = await call(api, 'GET', `/v1/users?limit=10`);
      const users = json?.['data'] as Data[];
      return users.some((user) => user['user_id'] === 'ada@example.com' && user['cost_usd'] === 0.002955);
    },
    { what: 'the cost of the user' },
  );
  const { json } = await call(api, 'GET', '/v1/cost/summary?group_by=department');
  expect((json?.['data'] as Data)['by_department']).toMatchObject([{ department: 'engineering', cost_usd: 0.002955 }]);
  const traces = await call(api, 'GET', '/v1/traces?agent_id=claude-code');
  expect(traces.json?.['data']).toMatchObject([
    { trace_id, root_span_name: 'claude_code.user_prompt', input_tokens: 2450, output_tokens: 47, cost_usd: 0.002955 },
  ]);
});
