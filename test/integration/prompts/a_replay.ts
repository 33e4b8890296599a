// Fixtures for replay tests: a real API, a real worker, the real engine, and an upstream that
// records its requests. Importing this module starts them for the test file and stops them after
// it.
import { afterAll, beforeAll, beforeEach, expect } from 'vitest';
import { echo, startUpstream, type TestUpstream } from '../../support/upstream.ts';
import { eventually } from '../../support/wait.ts';
import { type Answer, call, INGEST, type TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';

export type Data = Record<string, unknown>;

export let service: TestService;
export let upstream: TestUpstream;
export let api: TestApi;

beforeAll(async () => {
  upstream = await startUpstream();
  service = await TestService.start({ api: { llmUrl: upstream.url }, worker: { SERVICE_TRACE_GRACE_MS: '50' } });
  api = await service.startApi();
  await make('greet', 'Hello {{name}}, from {{ shop }}', 'gpt-4o-mini');
}, 120_000);
afterAll(async () => {
  await service.close();
  await upstream.close();
});
beforeEach(() => {
  upstream.requests.length = 0;
  upstream.behave(echo);
});

export const dataOf = ({ json }: Answer): Data => json?.['data'] as Data;
export async function make(name: string, template: unknown, model?: string): Promise<void> {
  const answer = await call(api, 'POST', '/v1/prompts', { body: { name, template, model } });
  expect(answer.status).toBe(201);
}
export const replay = (trace: string, body: Data = {}, headers = {}) =>
  call(api, 'POST', `/v1/traces/${trace}/replay`, { body, headers });
export const spansOf = (answer: Answer): Data[] => dataOf(answer)['spans'] as Data[];

export async function tree(trace: string): Promise<Data[]> {
  return spansOf(await call(api, 'GET', `/v1/traces/${trace}/tree`));
}

let traces = 0;
/** Ingests the events as one trace and waits until it can be read. */
export async function ingest(...events: { format?: string; [field: string]: unknown }[]): Promise<string> {
  const trace_id = `run-${++traces}`;
  for (const { format = 'chatcompletion', ...body } of events) {
    const answer = await call(api, 'POST', `${INGEST}/${format}`, {
      body: { trace_id, outcome: 'success', duration_ms: 10, ...body },
    });
    expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  }
  await eventually(async () => (await tree(trace_id)).length === events.length, { what: `${trace_id} to be read` });
  return trace_id;
}
export const aCall = (over: Data = {}) => ({
  request: { model: 'gpt-4o', messages: [{ role: 'user', content: 'Hi Ann' }], temperature: 0.3 },
  response: {
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hi!' } }],
    usage: { prompt_tokens: 5, completion_tokens: 2 },
  },
  ...over,
});
export const greeted = (prompt_variables: unknown = { name: 'Ann', shop: 'Acme' }, over: Data = {}) =>
  aCall({ attributes: { prompt_name: 'greet', prompt_variables, agent_id: 'bot' }, tags: ['live'], ...over });
