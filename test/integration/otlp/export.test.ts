// OTLP exports over HTTP: real exporters, retries, partial success, and the answers to invalid
// exports, in both encodings.
import { context, trace } from '@opentelemetry/api';
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtoExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  asJson,
  asProtobuf,
  decodeAnswer,
  decodeStatus,
  exportOf,
  type OtlpObject,
  otlpSpan,
} from '../../support/otlp.ts';
import { eventually } from '../../support/wait.ts';
import { makeKey } from '../api/a_cast.ts';
import { call, KEY, ORG, type TestApi, tokenOf } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';

type Data = Record<string, unknown>;
const PATHS = ['/v1/otlp/v1/traces', '/v1/traces'];
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

interface Heard {
  status: number;
  type: string;
  headers: Headers;
  bytes: Uint8Array;
}

async function send(
  body: Buffer,
  type: string | undefined,
  headers: Record<string, string> = {},
  path = PATHS[0] ?? '',
  method = 'POST',
): Promise<Heard> {
  const response = await fetch(api.url + path, {
    method,
    headers: { Authorization: `Bearer ${KEY}`, ...(type === undefined ? {} : { 'Content-Type': type }), ...headers },
    ...(method === 'GET' ? {} : { body: new Uint8Array(body) }),
  });
  const type_ = response.headers.get('content-type') ?? '';
  return {
    status: response.status,
    type: type_,
    headers: response.headers,
    bytes: new Uint8Array(await response.arrayBuffer()),
  };
}
const jsonOf = ({ bytes }: Heard): Data => JSON.parse(Buffer.from(bytes).toString()) as Data;

async function treeOf(trace_id: string, spans: number): Promise<Data[]> {
  let tree: Data[] = [];
  await eventually(
    async () => {
      const { json } = await call(api, 'GET', `/v1/traces/${trace_id}/tree`);
      tree = (json?.['data'] as Data)['spans'] as Data[];
      return tree.length >= spans;
    },
    { what: `the trace ${trace_id}` },
  );
  return tree;
}

/** Returns spans as an SDK records them: a run with two model calls. */
function recordedSpans(): { trace_id: string; spans: ReadableSpan[] } {
  const memory = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(memory)] });
  const tracer = provider.getTracer('test', '1');
  const root = tracer.startSpan('run', { attributes: { 'gen_ai.operation.name': 'invoke_agent' } });
  const within = trace.setSpan(context.active(), root);
  for (const name of ['one', 'two']) {
    const attributes = {
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.model': 'gpt-4o-mini',
      'gen_ai.usage.input_tokens': 1000,
      'gen_ai.usage.output_tokens': 100,
      'vendor.serial': 9_007_199_254_740_991,
      'vendor.ratio': 0.25,
      'vendor.list': ['a', 'b'],
    };
    const span = tracer.startSpan(name, { attributes }, within);
    span.addEvent('retry', { attempt: 1 });
    span.end();
  }
  root.end();
  return { trace_id: root.spanContext().traceId, spans: memory.getFinishedSpans() };
}

describe('real exporters', () => {
  const exporterOf = (kind: 'json' | 'proto', compression: string): JsonExporter | ProtoExporter => {
    const options = {
      url: `${api.url}/v1/traces`,
      headers: { 'X-Org-Api-Key': KEY, 'X-Org-Id': ORG },
      compression: compression as never,
    };
    return kind === 'json' ? new JsonExporter(options) : new ProtoExporter(options);
  };
  const exported = (exporter: JsonExporter | ProtoExporter, spans: ReadableSpan[]): Promise<number> =>
    new Promise((resolve) => {
      exporter.export(spans, ({ code }) => {
        resolve(code);
      });
    });

  test('spans exported again, in another encoding or compressed, are counted once', async () => {
    const { trace_id, spans } = recordedSpans();
    for (const [kind, compression] of [
      ['json', 'none'],
      ['proto', 'none'],
      ['proto', 'gzip'],
      ['json', 'gzip'],
    ] as const) {
      const exporter = exporterOf(kind, compression);
      expect(await exported(exporter, spans)).toBe(0);
      await exporter.shutdown();
    }
    // When this later span of the same trace has landed, the pipeline has processed all spans
    // before it.
    const after = otlpSpan(7, {}, { traceId: trace_id });
    expect((await send(asProtobuf(exportOf([after])), PROTOBUF)).status).toBe(200);
    const tree = await treeOf(trace_id, 4);
    expect(tree.map((span) => [span['name'], span['input_tokens'], span['cost_usd']]).toSorted()).toEqual([
      ['one', 1000, 0.00021],
      ['run', 0, 0],
      ['span 7', 0, 0],
      ['two', 1000, 0.00021],
    ]);
    const root = tree.find((span) => span['name'] === 'run')?.['span_id'];
    expect(tree.filter((span) => span['parent_span_id'] === root)).toHaveLength(2);
    expect(tree.find((span) => span['name'] === 'one')?.['attributes']).toMatchObject({
      'vendor.serial': 9_007_199_254_740_991,
      'vendor.ratio': 0.25,
      'vendor.list': ['a', 'b'],
      events: [{ name: 'retry', attributes: { attempt: 1 } }],
    });
    await eventually(
      async () => {
        const { json } = await call(api, 'GET', '/v1/traces?limit=100');
        const found = (json?.['data'] as Data[]).find((one) => one['trace_id'] === trace_id);
        return found?.['input_tokens'] === 2000 && found['cost_usd'] === 0.00042;
      },
      { what: 'the sums of the trace' },
    );
  });
});

describe('answers', () => {
  test('invalid spans are counted in the answer, and the others are stored', async () => {
    const traceId = 'a1'.repeat(16);
    const spans = [otlpSpan(1, {}, { traceId }), otlpSpan(2, {}, { traceId: '' }), otlpSpan(3, {}, { traceId })];
    const json = await send(asJson(exportOf(spans)), JSON_TYPE);
    expect([json.status, jsonOf(json)]).toEqual([
      200,
      {
        partialSuccess: {
          rejectedSpans: '1',
          errorMessage: '1 of 3 spans were rejected. span 1: traceId: must be 16 bytes',
        },
      },
    ]);
    const protobuf = await send(asProtobuf(exportOf(spans)), PROTOBUF);
    expect([protobuf.status, protobuf.type]).toEqual([200, PROTOBUF]);
    expect(decodeAnswer(protobuf.bytes)).toEqual({
      partialSuccess: { rejectedSpans: 1, errorMessage: expect.stringContaining('traceId') as unknown },
    });
    expect((await treeOf(traceId, 2)).map((span) => span['name']).toSorted()).toEqual(['span 1', 'span 3']);
  });

  test.each(PATHS)('a complete success and an empty export are an empty answer at %s', async (path) => {
    for (const spans of [[], [otlpSpan(5, {}, { traceId: 'a2'.repeat(16) })]]) {
      const json = await send(asJson(exportOf(spans)), JSON_TYPE, {}, path);
      expect([json.status, jsonOf(json)]).toEqual([200, {}]);
      const protobuf = await send(asProtobuf(exportOf(spans)), PROTOBUF, {}, path);
      expect([protobuf.status, protobuf.type, protobuf.bytes.length]).toEqual([200, PROTOBUF, 0]);
    }
  });

  test('the list of traces stays at its path, and other methods are rejected', async () => {
    expect((await call(api, 'GET', '/v1/traces')).status).toBe(200);
    const other = await send(Buffer.alloc(0), JSON_TYPE, {}, '/v1/traces', 'PUT');
    expect([other.status, other.headers.get('allow')]).toEqual([405, 'GET, HEAD, POST']);
    const get = await send(Buffer.alloc(0), undefined, {}, PATHS[0], 'GET');
    expect([get.status, get.headers.get('allow')]).toEqual([405, 'POST']);
  });

  test('a credential that the exporter sends percent-encoded, as the variable holds it, is accepted', async () => {
    const body = asProtobuf(exportOf([otlpSpan(8, {}, { traceId: 'a3'.repeat(16) })]));
    expect((await send(body, PROTOBUF, { Authorization: `Bearer%20${KEY}` })).status).toBe(200);
    expect((await send(body, PROTOBUF, { Authorization: `Bearer%20${KEY}x` })).status).toBe(401);
    const basic = Buffer.from(`anything:${KEY}`).toString('base64');
    const path = '/api/public/otel/v1/traces';
    expect((await send(body, PROTOBUF, { Authorization: `Basic%20${basic}` }, path)).status).toBe(200);
  });

  test.each(['gzip', 'br'])('%s is accepted', async (encoding) => {
    const body = asProtobuf(exportOf([otlpSpan(6, {}, { traceId: 'a3'.repeat(16) })]));
    const packed = encoding === 'gzip' ? gzipSync(body) : brotliCompressSync(body);
    expect((await send(packed, PROTOBUF, { 'Content-Encoding': encoding })).status).toBe(200);
  });
});

describe('errors', () => {
  const good = exportOf([otlpSpan(1)]);
  const big = Buffer.alloc(5 * 1024 * 1024 + 1, 0x20);
  const noOtlp: [string, (type: string) => Promise<Heard>][] = [
    ['no body of OTLP', (type) => send(Buffer.from('{'), type)],
    ['a body that is no gzip', (type) => send(Buffer.from('x'), type, { 'Content-Encoding': 'gzip' })],
  ];
  const cases: [string, number, string, (type: string) => Promise<Heard>][] = [
    [
      'no credential',
      401,
      'unauthenticated',
      (type) => send(bodyFor(type), type, { Authorization: 'Bearer sk_svc_nobody' }),
    ],
    ["another org's name", 403, 'cross_org_access', (type) => send(bodyFor(type), type, { 'X-Org-Id': 'org_other' })],
    ['too large', 413, 'payload_too_large', (type) => send(big, type)],
    [
      'too large once it is unpacked',
      413,
      'payload_too_large',
      (type) => send(gzipSync(big), type, { 'Content-Encoding': 'gzip' }),
    ],
    [
      'an unknown compression',
      415,
      'unsupported_media_type',
      (type) => send(bodyFor(type), type, { 'Content-Encoding': 'zstd' }),
    ],
    [
      'another version',
      422,
      'unsupported_api_version',
      (type) => send(bodyFor(type), type, { 'X-Service-Api-Version': '0.1' }),
    ],
  ];
  const bodyFor = (type: string): Buffer => (type === PROTOBUF ? asProtobuf(good) : asJson(good));

  test.each(noOtlp)('%s is 400 with a google.rpc.Status', async (_what, ask) => {
    const protobuf = await ask(PROTOBUF);
    const id = protobuf.headers.get('x-request-id');
    expect([protobuf.status, protobuf.type]).toEqual([400, PROTOBUF]);
    expect(decodeStatus(protobuf.bytes)).toEqual({
      code: 3,
      message: expect.stringMatching(/\w/) as unknown,
      info: { reason: 'invalid_request', domain: 'millrace', metadata: { request_id: id } },
    });
    const json = await ask(JSON_TYPE);
    expect(json.status).toBe(400);
    expect(jsonOf(json)).toEqual({
      code: 3,
      message: expect.stringMatching(/\w/) as unknown,
      details: [
        {
          '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
          reason: 'invalid_request',
          domain: 'millrace',
          metadata: { request_id: json.headers.get('x-request-id') },
        },
      ],
    });
  });

  test.each(cases)('%s is %i as on every path', async (_what, status, code, ask) => {
    for (const type of [PROTOBUF, JSON_TYPE]) {
      const heard = await ask(type);
      expect([heard.status, jsonOf(heard)]).toEqual([
        status,
        { code, detail: expect.stringMatching(/\w/) as unknown, request_id: heard.headers.get('x-request-id') },
      ]);
    }
  });

  test('a token without an organization is 422 as on every path, as the body is not at fault', async () => {
    const token = await tokenOf({ sub: 'user_local' });
    for (const type of [PROTOBUF, JSON_TYPE]) {
      const heard = await send(bodyFor(type), type, { Authorization: `Bearer ${token}` });
      expect([heard.status, jsonOf(heard)]).toEqual([
        422,
        {
          code: 'invalid_request',
          detail: 'X-Org-Id: is needed with a token',
          request_id: heard.headers.get('x-request-id'),
        },
      ]);
    }
  });

  test.each(['text/plain', 'application/octet-stream', undefined])('a content type of %s is 415', async (type) => {
    const heard = await send(asJson(good), type);
    expect([heard.status, jsonOf(heard)['code']]).toEqual([415, 'unsupported_media_type']);
  });

  test('a key without the scope is 403', async () => {
    const { raw } = await makeKey(api, ['traces:read']);
    const heard = await send(asProtobuf(good), PROTOBUF, { Authorization: `Bearer ${raw}` });
    expect([heard.status, jsonOf(heard)['code']]).toEqual([403, 'forbidden']);
  });

  test('an exceeded hard budget is 429 with Retry-After', async () => {
    const agent_id = 'agent_capped';
    const usage = {
      'gen_ai.operation.name': 'chat',
      'gen_ai.agent.id': agent_id,
      'gen_ai.request.model': 'm',
      'gen_ai.usage.input_tokens': 60,
      'gen_ai.usage.output_tokens': 0,
    };
    const limits = `/orgs/${ORG}/budget/agents`;
    expect((await call(api, 'POST', limits, { body: { agent_id, tokens: { hard_limit: 100 } } })).status).toBeLessThan(
      300,
    );
    await eventually(async () => (await call(api, 'GET', limits)).text.includes(agent_id), { what: 'the limit' });
    const spend = (index: number, attributes: OtlpObject) =>
      send(asProtobuf(exportOf([otlpSpan(index, attributes, { traceId: 'a4'.repeat(16) })])), PROTOBUF);
    // A run span that repeats the usage of its calls does not count against the limit.
    expect(
      (await spend(0, { ...usage, 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.usage.input_tokens': 1_000_000 }))
        .status,
    ).toBe(200);
    expect((await spend(1, usage)).status).toBe(200);
    expect((await spend(2, usage)).status).toBe(200);
    const refused = await spend(3, usage);
    expect([refused.status, Number(refused.headers.get('retry-after')) > 0]).toEqual([429, true]);
    expect(jsonOf(refused)['code']).toBe('rate_limited');
  });

  test('a missing log is 502 until it is back', async () => {
    await service.nats.kill();
    const heard = await send(asProtobuf(good), PROTOBUF);
    expect([heard.status, jsonOf(heard)['code']]).toEqual([502, 'upstream_unavailable']);
    await service.nats.start();
    await eventually(async () => (await send(asProtobuf(good), PROTOBUF)).status === 200, { what: 'exports after it' });
  });
});
