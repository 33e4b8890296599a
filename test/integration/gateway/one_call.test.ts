// One model call that is recorded by the gateway, by the span of an instrumented client and by the log
// of an agent counts once, in whatever order the records arrive, also if the worker is killed between
// them. The figures of the gateway win.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { json, type ModelServer, startModelServer } from '../../support/model_server.ts';
import { eventually } from '../../support/wait.ts';
import type { TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';
import { TestOrg } from '../budgets/a_budget.ts';
import { MESSAGE, MESSAGE_COST } from './anthropic_shapes.ts';

type Data = Record<string, unknown>;
type Kind = 'gateway' | 'span' | 'log';

const MODEL = 'claude-sonnet-4-5';
/** Tokens of MESSAGE: read from the cache, written to it and uncached input, and output. */
const TOKENS = 1310 + 50;
const SPAN_TOKENS = 1000 + 40;
const LOG_TOKENS = 1200 + 60;
const SPAN_ID = '00f067aa0ba902b7';

let service: TestService;
let upstream: ModelServer;
let api: TestApi;

beforeAll(async () => {
  upstream = await startModelServer();
  service = await TestService.start({
    api: { anthropicUrl: upstream.url.replace('/v1', '') },
    worker: { SERVICE_TRACE_GRACE_MS: '50' },
  });
  api = await service.startApi();
}, 60_000);
afterAll(async () => {
  await service.close();
  await upstream.close();
});

interface Call {
  org: TestOrg;
  trace_id: string;
  message_id: string;
  request_id: string;
}

async function aCall(): Promise<Call> {
  const org = await TestOrg.make([api]);
  await org.limit([api], { tokens: { hard_limit: 1_000_000 } });
  const trace_id = crypto.randomUUID().replaceAll('-', '');
  return { org, trace_id, message_id: `msg_${trace_id}`, request_id: `req_${trace_id}` };
}

const text = (key: string, value: string) => ({ key, value: { stringValue: value } });
const count = (key: string, value: number) => ({ key, value: { intValue: String(value) } });
const nanos = (ms: number): string => String(BigInt(ms) * 1_000_000n);

const SEND: Readonly<Record<Kind, (call: Call) => Promise<{ status: number }>>> = {
  gateway: ({ org, trace_id, message_id, request_id }) => {
    upstream.behave(json(200, JSON.stringify({ ...MESSAGE, id: message_id }), { 'request-id': request_id }));
    return org.call(
      api,
      'POST',
      '/v1/messages',
      { model: MODEL, max_tokens: 100, messages: [{ role: 'user', content: 'The capital of France?' }] },
      { traceparent: `00-${trace_id}-${SPAN_ID}-01` },
    );
  },
  span: ({ org, trace_id, message_id }) =>
    org.call(api, 'POST', '/v1/traces', {
      resourceSpans: [
        {
          scopeSpans: [
            {
              scope: { name: '@traceloop/instrumentation-anthropic' },
              spans: [
                {
                  traceId: trace_id,
                  spanId: SPAN_ID,
                  name: 'anthropic.chat',
                  startTimeUnixNano: nanos(Date.now() - 1000),
                  endTimeUnixNano: nanos(Date.now()),
                  attributes: [
                    text('gen_ai.operation.name', 'chat'),
                    text('gen_ai.request.model', MODEL),
                    text('gen_ai.response.id', message_id),
                    count('gen_ai.usage.input_tokens', 1000),
                    count('gen_ai.usage.output_tokens', 40),
                  ],
                },
              ],
            },
          ],
        },
      ],
    }),
  log: ({ org, trace_id, request_id }) =>
    org.call(api, 'POST', '/v1/logs', {
      resourceLogs: [
        {
          scopeLogs: [
            {
              scope: { name: 'com.anthropic.claude_code.events' },
              logRecords: [
                {
                  timeUnixNano: nanos(Date.now()),
                  traceId: trace_id,
                  spanId: SPAN_ID,
                  body: { stringValue: 'claude_code.api_request' },
                  attributes: [
                    text('event.name', 'api_request'),
                    text('model', MODEL),
                    text('request_id', request_id),
                    count('input_tokens', 1200),
                    count('output_tokens', 60),
                    count('duration_ms', 900),
                  ],
                },
              ],
            },
          ],
        },
      ],
    }),
};

async function spansOf({ org, trace_id }: Call): Promise<Data[]> {
  const answer = await org.call(api, 'GET', `/v1/traces/${trace_id}/tree`);
  return ((answer.json?.['data'] as Data | undefined)?.['spans'] ?? []) as Data[];
}
const tokensOf = (span: Data): number => Number(span['input_tokens']) + Number(span['output_tokens']);
const duplicateOf = (span: Data): unknown => span['duplicate_of'];
/** Returns what made a span of the test. */
const kindOf = (span: Data): Kind =>
  (span['attributes'] as Data)['gateway'] === true ? 'gateway' : span['span_id'] === SPAN_ID ? 'span' : 'log';

/** Resolves once a call counts as the records of these kinds say, in every read. */
async function countsOnce(call: Call, kinds: readonly Kind[], counted: Kind, tokens: number): Promise<Data[]> {
  let spans: Data[] = [];
  await eventually(
    async () => {
      spans = await spansOf(call);
      return (
        spans.length === kinds.length &&
        spans.every((span) => (kindOf(span) === counted) === (duplicateOf(span) === undefined))
      );
    },
    { what: `${kinds.join(', ')}, of which ${counted} counts`, withinMs: 30_000 },
  );
  expect(spans.map((span) => [kindOf(span), tokensOf(span)]).sort()).toEqual(
    kinds.map((kind) => [kind, kind === counted ? tokens : 0]).sort(),
  );
  const counting = spans.find((span) => kindOf(span) === counted);
  const { json: listed } = await call.org.call(api, 'GET', '/v1/traces?limit=10');
  expect((listed?.['data'] as Data[]).map(tokensOf)).toEqual([tokens]);
  await eventually(async () => (await call.org.budget(api)).tokens.used === tokens, { what: 'the use of the budget' });
  for (const span of spans)
    if (span !== counting) expect([span['cost_usd'], typeof duplicateOf(span)]).toEqual([0, 'string']);
  return spans;
}

const ORDERS: readonly (readonly Kind[])[] = [
  ['gateway', 'span', 'log'],
  ['gateway', 'log', 'span'],
  ['span', 'gateway', 'log'],
  ['log', 'gateway', 'span'],
];

/** Sends the records in this order, each after the one before it has landed. */
async function inOrder(order: readonly Kind[], between: (sent: number) => Promise<void>): Promise<void> {
  const call = await aCall();
  for (const [index, kind] of order.entries()) {
    expect((await SEND[kind](call)).status).toBe(200);
    await eventually(async () => (await spansOf(call)).length === index + 1, { what: kind, withinMs: 30_000 });
    await between(index + 1);
  }
  const spans = await countsOnce(call, order, 'gateway', TOKENS);
  const summary = await call.org.call(api, 'GET', '/v1/cost/summary');
  expect((summary.json?.['data'] as Data)['total_cost_usd']).toBeCloseTo(MESSAGE_COST, 12);
  expect(spans.find((span) => kindOf(span) === 'gateway')?.['cost_usd']).toBeCloseTo(MESSAGE_COST, 12);
}

test.each(ORDERS.map((order) => [order.join(', '), order] as const))('%s count once', async (_, order) => {
  await inOrder(order, () => Promise.resolve());
});

test.each([
  ['gateway', 'log', 'span'],
  ['span', 'gateway', 'log'],
] as const)(
  '%s, %s, %s count once after kill -9 of the worker behind the first and behind the second',
  async (...order) => {
    await inOrder(order, async (sent) => {
      if (sent === order.length) return;
      await service.killWorker();
      await service.startWorker();
    });
  },
  120_000,
);

test('a span and a log of a call that no gateway relayed are two records without a common id, and the gateway replaces both', async () => {
  const call = await aCall();
  for (const kind of ['span', 'log'] as const) expect((await SEND[kind](call)).status).toBe(200);
  await eventually(async () => (await call.org.budget(api)).tokens.used === SPAN_TOKENS + LOG_TOKENS, {
    what: 'both',
  });
  expect((await SEND.gateway(call)).status).toBe(200);
  await countsOnce(call, ['span', 'log', 'gateway'], 'gateway', TOKENS);
});

test('records that arrive in one batch of the worker count once', async () => {
  const calls = await Promise.all(Array.from({ length: 8 }, aCall));
  const sent = calls.flatMap((call) => [SEND.span(call), SEND.log(call)]);
  // The upstream answers with the ids of one call at a time.
  for (const call of calls) expect((await SEND.gateway(call)).status).toBe(200);
  for (const { status } of await Promise.all(sent)) expect(status).toBe(200);
  for (const call of calls) await countsOnce(call, ['span', 'log', 'gateway'], 'gateway', TOKENS);
});

test('two calls of the gateway with the same id are two calls', async () => {
  const call = await aCall();
  expect((await SEND.gateway(call)).status).toBe(200);
  expect((await SEND.gateway(call)).status).toBe(200);
  await eventually(async () => (await spansOf(call)).length === 2, { what: 'both calls', withinMs: 30_000 });
  expect((await spansOf(call)).map((span) => [tokensOf(span), duplicateOf(span)])).toEqual([
    [TOKENS, undefined],
    [TOKENS, undefined],
  ]);
  await eventually(async () => (await call.org.budget(api)).tokens.used === 2 * TOKENS, { what: 'the use of both' });
});
