// Guarantees to a client once /readyz answers 200, tested with a real worker that is starting.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { startWorker, type TestWorker } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';
import { ADMIN } from '../budgets/a_budget.ts';
import { call, startTestApi, type TestApi } from './an_api.ts';

let nats: TestNats;
let database: TestDatabase;
let api: TestApi;
let worker: TestWorker | null = null;

beforeAll(async () => {
  [nats, database] = await Promise.all([startTestNats(), createTestDatabase()]);
  api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: database.url });
}, 60_000);

afterAll(async () => {
  worker?.kill('SIGKILL');
  await worker?.exited;
  await api.close();
  await database.drop();
  await nats.remove();
});

test('a job requested as soon as /readyz answers 200 finds a worker', async () => {
  worker = startWorker({ natsUrl: nats.url, clickhouseUrl: database.url });
  await eventually(async () => (await call(api, 'GET', '/readyz')).status === 200, {
    what: 'readiness',
    withinMs: 60_000,
  });
  const answer = await call(api, 'POST', '/admin/jobs/budget-period/run', { headers: ADMIN, body: {} });
  expect([answer.status, answer.json?.['detail']]).toEqual([200, undefined]);
}, 90_000);
