// OTLP over gRPC: the exporters of OpenTelemetry for the three signals, the status of every error,
// and a drain that loses no call.
import { context, trace, TraceFlags } from '@opentelemetry/api';
import { OTLPLogExporter } from '@opentelemetry/exporter-logs-otlp-grpc';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-grpc';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-grpc';
import { CompressionAlgorithm } from '@opentelemetry/otlp-exporter-base';
import { InMemoryLogRecordExporter, LoggerProvider, SimpleLogRecordProcessor } from '@opentelemetry/sdk-logs';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { once } from 'node:events';
import { connect, type ClientHttp2Session, type IncomingHttpHeaders } from 'node:http2';
import { PassThrough } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { asProtobuf, decodeAnswer, decodeStatus, exportOf, logsAsProtobuf, otlpSpan } from '../../support/otlp.ts';
import { eventually } from '../../support/wait.ts';
import { makeKey } from '../api/a_cast.ts';
import { call, KEY, ORG, type TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';

type Data = Record<string, unknown>;
const TRACES = '/opentelemetry.proto.collector.trace.v1.TraceService/Export';
const LOGS = '/opentelemetry.proto.collector.logs.v1.LogsService/Export';
const METRICS = '/opentelemetry.proto.collector.metrics.v1.MetricsService/Export';

let service: TestService;
let api: TestApi;
let session: ClientHttp2Session;

beforeAll(async () => {
  service = await TestService.start({
    worker: { SERVICE_TRACE_GRACE_MS: '50' },
    api: { grpc: true, bodyBytesMax: 100_000 },
  });
  api = await service.startApi();
  session = connect(`http://127.0.0.1:${api.grpcPort}`);
}, 120_000);
afterAll(async () => {
  session.close();
  await service.close();
});

interface Answer {
  headers: IncomingHttpHeaders;
  /** Trailers, or the headers of an answer that has no message. */
  trailers: IncomingHttpHeaders;
  body: Buffer;
}

function framed(message: Uint8Array, isCompressed = false): Buffer {
  const prefix = Buffer.alloc(5);
  prefix[0] = isCompressed ? 1 : 0;
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

async function ask(
  path: string,
  body: Buffer | PassThrough,
  more: Record<string, string> = {},
  on = session,
): Promise<Answer> {
  const stream = on.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
    authorization: `Bearer ${KEY}`,
    ...more,
  });
  const chunks: Buffer[] = [];
  let headers: IncomingHttpHeaders = {};
  let trailers: IncomingHttpHeaders = {};
  stream.on('response', (given) => (headers = given));
  stream.on('trailers', (given) => (trailers = given));
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  if (body instanceof PassThrough) body.pipe(stream);
  else stream.end(body);
  // The server may reset a stream that it has answered, or has not begun.
  await new Promise((resolve) => stream.on('error', () => undefined).once('close', resolve));
  return { headers, trailers: headers['grpc-status'] === undefined ? trailers : headers, body: Buffer.concat(chunks) };
}

const statusIn = ({ trailers }: Answer) =>
  decodeStatus(Buffer.from(String(trailers['grpc-status-details-bin']), 'base64'));

async function spansOf(trace_id: string, count: number): Promise<Data[]> {
  let spans: Data[] = [];
  await eventually(
    async () => {
      const { json } = await call(api, 'GET', `/v1/traces/${trace_id}/tree`);
      spans = ((json?.['data'] as Data | undefined)?.['spans'] ?? []) as Data[];
      return spans.length >= count;
    },
    { what: `the trace ${trace_id}` },
  );
  return spans;
}

describe('the exporters of OpenTelemetry', () => {
  const options = () => ({ url: `http://127.0.0.1:${api.grpcPort}` });
  // The exporters read the key from the standard variable, as applications give it.
  beforeAll(() => {
    process.env['OTEL_EXPORTER_OTLP_HEADERS'] = `authorization=Bearer%20${KEY}`;
  });
  afterAll(() => {
    delete process.env['OTEL_EXPORTER_OTLP_HEADERS'];
  });

  test.each([CompressionAlgorithm.NONE, CompressionAlgorithm.GZIP])('export spans (%s)', async (compression) => {
    const memory = new InMemorySpanExporter();
    const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(memory)] });
    const root = provider.getTracer('shop').startSpan('checkout');
    provider.getTracer('shop').startSpan('pay', {}, trace.setSpan(context.active(), root)).end();
    root.end();
    const exporter = new OTLPTraceExporter({ ...options(), compression });
    const code = await new Promise<number>((resolve) => {
      exporter.export(memory.getFinishedSpans(), (result) => {
        resolve(result.code);
      });
    });
    expect(code).toBe(0);
    await exporter.shutdown();
    expect((await spansOf(root.spanContext().traceId, 2)).map((span) => span['name'])).toEqual(['checkout', 'pay']);
  });

  test('export log records', async () => {
    const memory = new InMemoryLogRecordExporter();
    const provider = new LoggerProvider({ processors: [new SimpleLogRecordProcessor({ exporter: memory })] });
    const spanContext = { traceId: 'd1'.repeat(16), spanId: 'd2'.repeat(8), traceFlags: TraceFlags.SAMPLED };
    provider.getLogger('shop').emit({ context: trace.setSpanContext(context.active(), spanContext), body: 'paid' });
    const exporter = new OTLPLogExporter(options());
    const code = await new Promise<number>((resolve) => {
      exporter.export(memory.getFinishedLogRecords(), (result) => {
        resolve(result.code);
      });
    });
    expect(code).toBe(0);
    await exporter.shutdown();
    expect(await spansOf(spanContext.traceId, 1)).toMatchObject([{ response: 'paid', parent_span_id: 'd2'.repeat(8) }]);
  });

  test('export metrics', async () => {
    const memory = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
    const reader = new PeriodicExportingMetricReader({ exporter: memory });
    const provider = new MeterProvider({ readers: [reader] });
    provider.getMeter('shop').createHistogram('latency').record(3);
    await reader.forceFlush();
    const [metrics] = memory.getMetrics();
    const exporter = new OTLPMetricExporter(options());
    const code = await new Promise<number>((resolve) => {
      if (metrics === undefined) throw new Error('no metrics');
      exporter.export(metrics, (result) => {
        resolve(result.code);
      });
    });
    expect(code).toBe(0);
    await provider.shutdown();
    await exporter.shutdown();
  });
});

describe('answers', () => {
  const good = asProtobuf(exportOf([otlpSpan(1, {}, { traceId: 'e1'.repeat(16) })]));

  test('a success has a message and the status 0 in the trailers', async () => {
    const { headers, trailers, body } = await ask(TRACES, framed(good));
    expect([headers[':status'], headers['content-type'], trailers['grpc-status'], body]).toEqual([
      200,
      'application/grpc+proto',
      '0',
      Buffer.alloc(5),
    ]);
    expect(headers['x-request-id']).toMatch(/^req_/);
  });

  test('invalid records are in the partial success', async () => {
    const spans = asProtobuf(
      exportOf([otlpSpan(1, {}, { traceId: 'e1'.repeat(16) }), otlpSpan(2, {}, { traceId: '' })]),
    );
    const { body } = await ask(TRACES, framed(gzipSync(spans), true), { 'grpc-encoding': 'gzip' });
    expect(decodeAnswer(body.subarray(5))).toMatchObject({ partialSuccess: { rejectedSpans: 1 } });
    const logs = await ask(LOGS, framed(logsAsProtobuf([{ body: { stringValue: 'x' } }])));
    expect(decodeAnswer(logs.body.subarray(5), 'rejectedLogRecords')).toMatchObject({
      partialSuccess: { rejectedLogRecords: 1 },
    });
    const metrics = await ask(METRICS, framed(Buffer.alloc(0)));
    expect(decodeAnswer(metrics.body.subarray(5))).toMatchObject({
      partialSuccess: { errorMessage: expect.stringContaining('not stored') as unknown },
    });
  });

  const errors: [string, number, string, () => Promise<Answer>][] = [
    ['a message that is not OTLP', 3, 'invalid_request', () => ask(TRACES, framed(Buffer.from('{')))],
    ['no message', 3, 'invalid_request', () => ask(TRACES, Buffer.alloc(0))],
    ['two messages', 3, 'invalid_request', () => ask(TRACES, Buffer.concat([framed(good), framed(good)]))],
    [
      'a message that is not gzip',
      3,
      'invalid_request',
      () => ask(TRACES, framed(good, true), { 'grpc-encoding': 'gzip' }),
    ],
    [
      'an unknown key',
      16,
      'unauthenticated',
      () => ask(TRACES, framed(good), { authorization: 'Bearer sk_svc_nobody' }),
    ],
    [
      "another organization's name",
      7,
      'cross_org_access',
      () => ask(TRACES, framed(good), { 'x-org-id': 'org_other' }),
    ],
    ['a message that is too large', 8, 'payload_too_large', () => ask(TRACES, framed(Buffer.alloc(200_000)))],
    [
      'a message that is too large once unpacked',
      8,
      'payload_too_large',
      () => ask(TRACES, framed(gzipSync(Buffer.alloc(200_000)), true), { 'grpc-encoding': 'gzip' }),
    ],
  ];
  test.each(errors)('%s is status %i (%s)', async (_what, code, reason, send) => {
    const answer = await send();
    expect([answer.headers[':status'], Number(answer.trailers['grpc-status'])]).toEqual([200, code]);
    expect(statusIn(answer)).toMatchObject({
      code,
      info: { reason, metadata: { request_id: answer.headers['x-request-id'] } },
    });
    expect(answer.trailers['grpc-message']).toMatch(/\w/);
  });

  test('a key without the scope is PERMISSION_DENIED', async () => {
    const { raw } = await makeKey(api, ['traces:read']);
    expect((await ask(TRACES, framed(good), { authorization: `Bearer ${raw}` })).trailers['grpc-status']).toBe('7');
  });

  test('an unknown method and an unknown compression are UNIMPLEMENTED', async () => {
    expect(
      (await ask('/opentelemetry.proto.collector.trace.v1.TraceService/Import', framed(good))).trailers['grpc-status'],
    ).toBe('12');
    expect((await ask(TRACES, framed(good, true), { 'grpc-encoding': 'zstd' })).trailers['grpc-status']).toBe('12');
    expect((await ask(TRACES, framed(good), { 'content-type': 'application/json' })).headers[':status']).toBe(415);
  });

  test('an exceeded hard budget is RESOURCE_EXHAUSTED with RetryInfo', async () => {
    const agent_id = 'agent_grpc';
    const limits = `/orgs/${ORG}/budget/agents`;
    const made = await call(api, 'POST', limits, { body: { agent_id, tokens: { hard_limit: 100 } } });
    expect(made.status).toBeLessThan(300);
    await eventually(async () => (await call(api, 'GET', limits)).text.includes(agent_id), { what: 'the limit' });
    const spend = (index: number) => {
      const usage = {
        'gen_ai.operation.name': 'chat',
        'gen_ai.agent.id': agent_id,
        'gen_ai.request.model': 'm',
        'gen_ai.usage.input_tokens': 120,
        'gen_ai.usage.output_tokens': 0,
      };
      return ask(TRACES, framed(asProtobuf(exportOf([otlpSpan(index, usage, { traceId: 'e4'.repeat(16) })]))));
    };
    expect((await spend(1)).trailers['grpc-status']).toBe('0');
    const refused = await spend(2);
    expect(refused.trailers['grpc-status']).toBe('8');
    const { retry_seconds, info } = statusIn(refused);
    expect([info['reason'], (retry_seconds ?? 0) > 0]).toEqual(['rate_limited', true]);
  });
});

test('a drain answers a call that is in progress and takes no new ones', async () => {
  const other = await service.startApi();
  const client = connect(`http://127.0.0.1:${other.grpcPort}`);
  client.on('error', () => undefined);
  const traceId = 'e9'.repeat(16);
  const body = framed(asProtobuf(exportOf([otlpSpan(9, {}, { traceId })])));
  const begun = new PassThrough();
  const answer = ask(TRACES, begun, {}, client);
  begun.write(body.subarray(0, 20));
  // The server reads a connection in order: once it has answered this call, it has begun that one.
  expect((await ask(METRICS, framed(Buffer.alloc(0)), {}, client)).trailers['grpc-status']).toBe('0');
  const closed = other.close();
  await once(client, 'goaway');
  const [refused] = (await once(client.request({ ':method': 'POST', ':path': TRACES }), 'error')) as [{ code: string }];
  expect(refused.code).toBe('ERR_HTTP2_GOAWAY_SESSION');
  begun.end(body.subarray(20));
  expect((await answer).trailers['grpc-status']).toBe('0');
  await closed;
  expect(await spansOf(traceId, 1)).toHaveLength(1);
});
