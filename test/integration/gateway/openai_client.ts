// The official openai package against the gateway, with a real pipeline behind it and an upstream
// of the test's own. Importing this module starts them for the test file and stops them after it.
import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, expect } from 'vitest';
import { type ModelServer, startModelServer } from '../../support/model_server.ts';
import { eventually } from '../../support/wait.ts';
import { call, KEY, type TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';

export type Data = Record<string, unknown>;
export const UPSTREAM_KEY = 'sk-upstream-of-the-operator';

let service: TestService;
export let upstream: ModelServer;
export let api: TestApi;
export let client: OpenAI;

beforeAll(async () => {
  upstream = await startModelServer();
  service = await TestService.start({
    api: { llmUrl: upstream.url, llmKey: UPSTREAM_KEY },
    worker: { SERVICE_TRACE_GRACE_MS: '50' },
  });
  api = await service.startApi();
  client = new OpenAI({ apiKey: KEY, baseURL: `${api.url}/v1`, maxRetries: 0 });
});
afterAll(async () => {
  await service.close();
  await upstream.close();
});
beforeEach(() => {
  upstream.reached.length = 0;
});

let traces = 0;
/** Returns a new trace id and the headers that set it. */
export function aTrace(more: Record<string, string> = {}): { trace_id: string; headers: Record<string, string> } {
  const trace_id = `trc_gateway_${++traces}`;
  return { trace_id, headers: { 'X-Service-Trace-Id': trace_id, ...more } };
}

/** Returns the only span of a trace, once the API returns it. */
export async function spanOf(trace_id: string): Promise<Data> {
  let spans: Data[] = [];
  await eventually(
    async () => {
      const { json: body } = await call(api, 'GET', `/v1/traces/${trace_id}/tree`);
      spans = ((body?.['data'] as Data | undefined)?.['spans'] ?? []) as Data[];
      return spans.length > 0;
    },
    { what: `the trace ${trace_id}` },
  );
  expect(spans).toHaveLength(1);
  return spans[0] ?? {};
}

export const attributesOf = (span: Data): Data => span['attributes'] as Data;
