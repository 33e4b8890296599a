// Limits of keys under 128 concurrent streams over two API processes: the request that reaches a limit
// is the last one admitted, whichever process receives it, also after one process was killed.
import { type ChildProcess, fork } from 'node:child_process';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { startWorker, type TestWorker } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';
import type { Answer } from '../api/an_api.ts';
import type { ApiAddress } from '../budgets/a_budget.ts';
import { LimitedKey } from './a_key.ts';

vi.setConfig({ testTimeout: 120_000 });

const STREAMS = 128;
const TOKENS = 100;

interface ApiProcess {
  child: ChildProcess;
  api: ApiAddress;
}

let database: TestDatabase;
let nats: TestNats;
let worker: TestWorker;
let processes: ApiProcess[];

async function startApi(): Promise<ApiProcess> {
  const child = fork(new URL('../../support/api_worker.ts', import.meta.url), [], {
    env: { ...process.env, TEST_NATS_URL: nats.url, TEST_CLICKHOUSE_URL: database.url },
  });
  const api = await new Promise<ApiAddress>((resolve, reject) => {
    child.once('message', (told) => {
      resolve(told as ApiAddress);
    });
    child.once('exit', (status) => {
      reject(new Error(`an API ended with ${String(status)}`));
    });
  });
  return { child, api };
}
const apis = (): ApiAddress[] => processes.map(({ api }) => api);

beforeAll(async () => {
  [database, nats] = await Promise.all([createTestDatabase(), startTestNats()]);
  processes = await Promise.all([startApi(), startApi()]);
  worker = startWorker({ natsUrl: nats.url, clickhouseUrl: database.url });
  await worker.ready;
}, 90_000);

afterAll(async () => {
  for (const { child } of processes) child.kill('SIGKILL');
  worker.kill('SIGKILL');
  await worker.exited;
  await nats.remove();
  await database.drop();
});

/** Sends from every stream, to each process in turn, until each was rejected. @returns the admitted requests */
async function flood(send: (api: ApiAddress) => Promise<Answer>): Promise<number> {
  let admitted = 0;
  const unexpected: Answer[] = [];
  await Promise.all(
    Array.from({ length: STREAMS }, async (_, stream) => {
      for (let turn = stream; ; turn++) {
        const api = apis()[turn % processes.length];
        if (api === undefined) return;
        const answer = await send(api);
        if (answer.status === 200) admitted++;
        else if (answer.status === 429) return;
        // NATS may confirm late on a busy machine; such a request is sent again.
        else if (answer.status !== 502) {
          unexpected.push(answer);
          return;
        }
      }
    }),
  );
  expect(unexpected.map(({ status, text }) => `${status} ${text}`)).toEqual([]);
  return admitted;
}

test('exactly as many requests pass as the rate of the key allows', async () => {
  const key = await LimitedKey.make(apis(), { requests_per_minute: 700 });
  const admitted = await flood((api) => key.call(api, 'GET', `/orgs/${key.org.id}`));
  expect(admitted).toBe(700);
});

test('the tokens of a minute exceed the rate by no more than the request that reaches it', async () => {
  const key = await LimitedKey.make(apis(), { tokens_per_minute: 60_050 });
  const admitted = await flood((api) => key.send(api, TOKENS));
  expect(admitted).toBe(601);
});

test('a budget is exceeded by no more than the request that reaches it, and what landed is what was admitted', async () => {
  const key = await LimitedKey.make(apis(), { budget: { resource: 'cost_usd', hard_limit: 60.05, period: 'day' } });
  const admitted = await flood((api) => key.send(api, 1, { attributes: { cost_usd: 0.1 } }));
  expect(admitted).toBe(601);
  const [first] = apis();
  if (first !== undefined) await key.used(first, { cost_usd: 60.1, status: 'hard_exceeded' });
});

test('after kill -9 of one process the budget still holds, in the survivor and in a new process', async () => {
  const key = await LimitedKey.make(apis(), { budget: { resource: 'tokens', hard_limit: 5000, period: 'day' } });
  const [first, second] = apis();
  if (first === undefined || second === undefined) throw new Error('two processes are needed');
  for (let i = 0; i < 30; i++) expect((await key.send(i % 2 === 0 ? first : second, TOKENS)).status).toBe(200);
  processes[1]?.child.kill('SIGKILL');
  processes = [...processes.slice(0, 1), await startApi()];
  const [, fresh] = apis();
  if (fresh === undefined) throw new Error('the new process is missing');
  await eventually(async () => (await key.listed(fresh)) !== undefined, { what: 'the key in the new process' });
  let admitted = 30 + (await flood((api) => key.send(api, TOKENS)));
  // What the killed process had reserved without reporting the end counts until its events have landed.
  await eventually(
    async () => {
      if (admitted < 50 && (await key.send(first, TOKENS)).status === 200) admitted++;
      return admitted >= 50;
    },
    { what: 'the whole budget used' },
  );
  expect(admitted).toBe(50);
  for (const api of [first, fresh]) expect((await key.send(api, TOKENS)).status).toBe(429);
  await key.used(first, { tokens: 5000, status: 'hard_exceeded' });
  for (const api of [first, fresh]) expect((await key.send(api, TOKENS)).status).toBe(429);
});
