// Datasets of an organization that is new for each test, with a real API, a real worker, the real
// engine and an upstream of the test's own. Importing this module starts them for the test file and
// stops them after it.
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { startWorker, type TestWorker } from '../../support/pipeline.ts';
import { say, startUpstream, type TestUpstream, type UpstreamBehaviour } from '../../support/upstream.ts';
import { call, startTestApi, type TestApi } from '../api/an_api.ts';
import { makeOrg, type TestOrg } from './an_eval.ts';

export let nats: TestNats;
export let database: TestDatabase;
export let upstream: TestUpstream;
export let api: TestApi;
export let worker: TestWorker;
export let org: TestOrg;

beforeAll(async () => {
  [nats, database, upstream] = await Promise.all([startTestNats(), createTestDatabase(), startUpstream()]);
  api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: database.url, llmUrl: upstream.url });
  worker = startWorker({
    natsUrl: nats.url,
    clickhouseUrl: database.url,
    more: { SERVICE_LLM_BASE_URL: upstream.url, SERVICE_TRACE_GRACE_MS: '50' },
  });
  await worker.ready;
});

afterAll(async () => {
  worker.kill('SIGKILL');
  await worker.exited;
  await api.close();
  await upstream.close();
  await nats.remove();
  await database.drop();
});

beforeEach(async () => {
  org = await makeOrg(api);
});

export interface DatasetShown {
  dataset_id: string;
  name: string;
  version: string;
  item_count: number;
  created_at: string;
}
export const item = (question: string, answer = 'yes') => ({
  input: { question },
  expected: { answer },
  metadata: { tags: ['t'] },
});
export const make = (items: unknown[], { name = 'd', version = '1' } = {}) =>
  org.post<DatasetShown>('/v1/datasets', { name, version, items }, 201);
export const refused = async (path: string, body: unknown) => {
  const { status, json } = await call(api, 'POST', path, { headers: org.headers, body });
  return { status, code: json?.['code'], detail: json?.['detail'] };
};

/**
 * Returns an upstream that answers with the entry whose key occurs in the last message, or `no
 * idea`.
 */
export const byText =
  (answers: Record<string, string>): UpstreamBehaviour =>
  (res, request) => {
    const text = request.body.messages.at(-1)?.content ?? '';
    const [, answer = 'no idea'] = Object.entries(answers).find(([part]) => text.includes(part)) ?? [];
    say(answer)(res, request);
  };
