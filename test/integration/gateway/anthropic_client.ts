// The official @anthropic-ai/sdk package against the gateway, with a real pipeline behind it and an
// upstream of the test's own. Importing this module starts them for the test file and stops them
// after it.
import Anthropic from '@anthropic-ai/sdk';
import { afterAll, beforeAll, beforeEach, expect } from 'vitest';
import { type ModelServer, startModelServer } from '../../support/model_server.ts';
import { eventually } from '../../support/wait.ts';
import { call, KEY, type TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';

export type Data = Record<string, unknown>;
export const UPSTREAM_KEY = 'sk-ant-of-the-operator';
export const MODEL = 'claude-sonnet-4-5';

let service: TestService;
export let upstream: ModelServer;
export let api: TestApi;
export let client: Anthropic;

beforeAll(async () => {
  upstream = await startModelServer();
  service = await TestService.start({
    api: { anthropicUrl: upstream.url.replace('/v1', ''), anthropicKey: UPSTREAM_KEY },
    worker: { SERVICE_TRACE_GRACE_MS: '50' },
  });
  api = await service.startApi();
  client = new Anthropic({ apiKey: KEY, baseURL: `${api.url}/anthropic`, maxRetries: 0 });
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
  const trace_id = `trc_anthropic_${++traces}`;
  return { trace_id, headers: { 'X-Service-Trace-Id': trace_id, ...more } };
}

/** Returns the spans of a trace, once the API returns that many. */
export async function spansOf(trace_id: string, count = 1): Promise<Data[]> {
  let spans: Data[] = [];
  await eventually(
    async () => {
      const { json: body } = await call(api, 'GET', `/v1/traces/${trace_id}/tree`);
      spans = ((body?.['data'] as Data | undefined)?.['spans'] ?? []) as Data[];
      return spans.length >= count;
    },
    { what: `the trace ${trace_id}` },
  );
  expect(spans).toHaveLength(count);
  return spans;
}

export const spanOf = async (trace_id: string): Promise<Data> => (await spansOf(trace_id))[0] ?? {};
export const attributesOf = (span: Data): Data => span['attributes'] as Data;
