// One call of the openai package through the gateway, under OpenInference and OpenTelemetry's
// instrumentation of undici, is one call and one cost: whether the gateway's record or the spans of
// the application come first, also when the worker is killed between them.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { json, type ModelServer, startModelServer } from '../../support/model_server.ts';
import { eventually } from '../../support/wait.ts';
import { TestService } from '../a_service.ts';
import { aTenant, type Tenant } from '../a_tenant.ts';
import type { TestApi } from '../api/an_api.ts';

type Data = Record<string, unknown>;

const APP = new URL('../../support/gateway_app.ts', import.meta.url).pathname;
/** 60 uncached and 40 cached tokens in, 20 out, at 0.15, 0.075 and 0.6 USD for a million. */
const COST = (60 * 0.15 + 40 * 0.075 + 20 * 0.6) / 1e6;

let service: TestService;
let upstream: ModelServer;
let api: TestApi;
let tenant: Tenant;
let answers = 0;

beforeAll(async () => {
  upstream = await startModelServer();
  service = await TestService.start({
    api: { llmUrl: upstream.url, llmKey: 'none' },
    worker: { SERVICE_TRACE_GRACE_MS: '50' },
  });
  api = await service.startApi();
}, 120_000);
afterAll(async () => {
  await service.close();
  await upstream.close();
});
beforeEach(async () => {
  tenant = await aTenant({ api });
  upstream.reached.length = 0;
  const usage = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 };
  const message = { role: 'assistant', content: 'Paris.' };
  const answer = {
    id: `chatcmpl-${++answers}`,
    object: 'chat.completion',
    created: 1,
    model: 'gpt-4o-mini',
    choices: [{ index: 0, message, finish_reason: 'stop' }],
    usage: { ...usage, prompt_tokens_details: { cached_tokens: 40 } },
  };
  upstream.behave(json(200, JSON.stringify(answer)));
});

interface App {
  trace_id: string;
  /** Lets the application export its spans, and resolves once it has ended. */
  export: () => Promise<void>;
}

/** Runs the application against a base URL. Resolves once it has made its call. */
async function runApp(baseUrl: string): Promise<App> {
  const key = String(tenant.key['X-Org-Api-Key']);
  const child = spawn(process.execPath, [APP], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: {
      PATH: process.env['PATH'],
      OPENAI_BASE_URL: baseUrl,
      OPENAI_API_KEY: key,
      OTEL_EXPORTER_OTLP_ENDPOINT: `${api.url}/v1/otlp`,
      OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer%20${key}`,
    },
  });
  const closed = once(child, 'close');
  const complaints = text(child.stderr);
  const [line] = (await Promise.race([once(child.stdout, 'data'), closed.then(() => [''])])) as [Buffer | string];
  const trace_id = line.toString().trim();
  if (trace_id === '') throw new Error(await complaints);
  return {
    trace_id,
    export: async () => {
      child.stdin.end();
      expect([(await closed)[0], await complaints]).toEqual([0, '']);
    },
  };
}

/** Sends the gateway the request that the application sent to the model itself. */
async function relayLate(): Promise<void> {
  const [sent] = upstream.reached;
  if (sent === undefined) throw new Error('the application made no call');
  const { authorization = '', traceparent = '' } = sent.headers;
  const headers = { authorization, traceparent: String(traceparent), 'content-type': 'application/json' };
  const response = await fetch(`${api.url}/v1/chat/completions`, {
    method: 'POST',
    headers,
    body: new Uint8Array(sent.body),
  });
  expect([response.status, await response.text()]).toEqual([200, expect.stringContaining(`chatcmpl-${answers}`)]);
}

async function spansOf(trace_id: string): Promise<Data[]> {
  const { json: tree } = await tenant.get(`/v1/traces/${trace_id}/tree`);
  return ((tree?.['data'] as Data | undefined)?.['spans'] ?? []) as Data[];
}
const landed = (trace_id: string, count: number) =>
  eventually(async () => (await spansOf(trace_id)).length === count, { what: `${count} spans`, withinMs: 60_000 });

/** Spans of the application: its own, that of the openai package, and that of the HTTP request. */
const APP_SPANS = 3;

test.each([
  ['the gateway', 'the spans', false],
  ['the gateway', 'the spans', true],
  ['the spans', 'the gateway', false],
  ['the spans', 'the gateway', true],
])(
  '%s before %s: one call and one cost (kill -9 of the worker between them: %s)',
  async (first, _second, kill) => {
    const isGatewayFirst = first === 'the gateway';
    const app = await runApp(isGatewayFirst ? `${api.url}/v1` : upstream.url);
    const { trace_id } = app;
    if (!isGatewayFirst) await app.export();
    await landed(trace_id, isGatewayFirst ? 1 : APP_SPANS);
    if (kill) {
      await service.killWorker();
      await service.startWorker();
    }
    await (isGatewayFirst ? app.export() : relayLate());
    await landed(trace_id, APP_SPANS + 1);

    const isGateway = (span: Data): boolean => (span['attributes'] as Data)['gateway'] === true;
    const isCall = (span: Data): boolean => (span['attributes'] as Data)['span_kind'] === 'llm';
    let calls: Data[] = [];
    await eventually(
      async () => {
        calls = (await spansOf(trace_id)).filter(isCall);
        return calls.length === 2 && calls.every((span) => isGateway(span) === (span['duplicate_of'] === undefined));
      },
      { what: 'the record of the gateway to count alone', withinMs: 60_000 },
    );
    const [counted, twin] = [calls.find(isGateway), calls.find((span) => !isGateway(span))];
    expect(counted).toMatchObject({ input_tokens: 100, output_tokens: 20 });
    expect(counted?.['cost_usd']).toBeCloseTo(COST, 12);
    expect(twin).toMatchObject({ input_tokens: 0, output_tokens: 0, cost_usd: 0, duplicate_of: counted?.['span_id'] });
    expect((twin?.['attributes'] as Data)['scope']).toMatchObject({
      name: expect.stringContaining('openai') as string,
    });
    // The request of undici carried the trace: the gateway's record stands below it.
    const request = (await spansOf(trace_id)).find((span) => span['span_id'] === counted?.['parent_span_id']);
    expect((request?.['attributes'] as Data)['scope']).toMatchObject({ name: '@opentelemetry/instrumentation-undici' });
    await eventually(
      async () => {
        const { json: listed } = await tenant.get('/v1/traces?limit=10');
        const [one, ...others] = listed?.['data'] as Data[];
        return others.length === 0 && one?.['input_tokens'] === 100 && one['output_tokens'] === 20;
      },
      { what: 'the sums of the trace' },
    );
    const { json: summary } = await tenant.get('/v1/cost/summary');
    expect((summary?.['data'] as Data)['total_cost_usd']).toBeCloseTo(COST, 12);
  },
  180_000,
);
