// Clients of Helicone that change the base URL alone: their headers authenticate and label a call, and none
// of them reaches the upstream.
import { rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { json, type ModelServer, startModelServer } from '../../support/model_server.ts';
import { tempDir } from '../../support/temp.ts';
import { eventually } from '../../support/wait.ts';
import { call, KEY, type TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';
import { COMPLETION, question } from './openai_shapes.ts';

type Data = Record<string, unknown>;

let service: TestService;
let upstream: ModelServer;
let api: TestApi;
let folder: string;

beforeAll(async () => {
  upstream = await startModelServer();
  folder = tempDir('helicone');
  const routes = path.join(folder, 'routes.json');
  writeFileSync(
    routes,
    JSON.stringify([{ model: '*', credential: 'caller', upstreams: [{ base_url: upstream.url }] }]),
  );
  service = await TestService.start({ api: { gateway: { routes } }, worker: { SERVICE_TRACE_GRACE_MS: '50' } });
  api = await service.startApi();
});
afterAll(async () => {
  await service.close();
  await upstream.close();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => {
  upstream.reached.length = 0;
  upstream.behave(json(200, JSON.stringify(COMPLETION)));
});

const ask = (headers: Record<string, string>) =>
  new OpenAI({
    apiKey: 'sk-of-the-caller',
    baseURL: `${api.url}/v1`,
    maxRetries: 0,
    defaultHeaders: headers,
  }).chat.completions
    .create({ model: 'gpt-4o-mini', messages: question })
    .withResponse();

async function spanOf(trace_id: string): Promise<Data> {
  let spans: Data[] = [];
  await eventually(async () => {
    const { json: body } = await call(api, 'GET', `/v1/traces/${trace_id}/tree`);
    spans = ((body?.['data'] as Data | undefined)?.['spans'] ?? []) as Data[];
    return spans.length > 0;
  });
  return spans[0] ?? {};
}

test('Helicone-Auth authenticates beside the own key of the caller, and the other headers label the span', async () => {
  const { response } = await ask({
    'Helicone-Auth': `Bearer ${KEY}`,
    'Helicone-User-Id': 'ann',
    'Helicone-Session-Id': 'session-1',
    'Helicone-Session-Path': '/plan/search',
    'Helicone-Session-Name': 'Trip',
    'Helicone-Property-Feature': 'search',
    'Helicone-Property-Plan': 'pro',
  });
  const [reached] = upstream.reached;
  expect(reached?.headers.authorization).toBe('Bearer sk-of-the-caller');
  expect(reached?.rawHeaders.join().toLowerCase()).not.toContain('helicone');
  expect(reached?.rawHeaders.join()).not.toContain(KEY);
  const span = await spanOf(response.headers.get('x-service-trace-id') ?? '');
  expect(span['attributes']).toMatchObject({
    session_id: 'session-1',
    user_id: 'ann',
    session_path: '/plan/search',
    session_name: 'Trip',
    properties: { feature: 'search', plan: 'pro' },
  });
  const found = async () =>
    (await call(api, 'GET', '/v1/traces?attributes.properties.feature=search')).json?.['data'] as unknown[];
  await eventually(async () => (await found()).length > 0, { what: 'the trace in the list' });
  expect(await found()).toMatchObject([{ session_id: 'session-1', user_id: 'ann' }]);
});

test('the headers of this service win over those of Helicone', async () => {
  const { response } = await ask({
    'X-Org-Api-Key': KEY,
    'Helicone-Auth': 'Bearer of-another-service',
    'X-Service-User-Id': 'ben',
    'Helicone-User-Id': 'ann',
    'X-Service-Session-Id': 'session-2',
    'Helicone-Session-Id': 'session-1',
  });
  expect((await spanOf(response.headers.get('x-service-trace-id') ?? ''))['attributes']).toMatchObject({
    session_id: 'session-2',
    user_id: 'ben',
  });
});

test('an unknown key in Helicone-Auth is 401, and a label that is too long is 422 naming its header', async () => {
  await expect(ask({ 'Helicone-Auth': 'Bearer sk_svc_unknown' })).rejects.toThrow(OpenAI.AuthenticationError);
  const long = { 'Helicone-Auth': `Bearer ${KEY}`, 'Helicone-Property-Note': 'x'.repeat(513) };
  await expect(ask(long)).rejects.toThrow('helicone-property-note: must be at most 512 characters');
  expect(upstream.reached).toHaveLength(0);
});
