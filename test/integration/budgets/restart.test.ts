// Everything was gone at once, as after a loss of power: the API that comes first knows neither what the log holds nor, while ClickHouse
// is on its way, what was stored. At a hard limit it waits for both instead of guessing; nobody else waits.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { runStatement, startTestEngine, type TestEngine } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { startWorker, type TestWorker } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';
import { startTestApi, type TestApi } from '../api/an_api.ts';
import { code, TestOrg } from './a_budget.ts';

vi.setConfig({ testTimeout: 120_000 });

const LIMIT = 100;

let engine: TestEngine;
let nats: TestNats;
let before: TestApi;
let worker: TestWorker;

beforeEach(async () => {
  [engine, nats] = await Promise.all([startTestEngine(), startTestNats()]);
  await runStatement(engine.url, 'CREATE DATABASE millrace', '');
  before = await startTestApi(options());
  await startsWorker();
}, 90_000);

afterEach(async () => {
  await killWorker();
  await nats.remove();
  await engine.remove();
});

const options = () => ({ natsUrl: nats.url, clickhouseUrl: engine.url });

async function startsWorker(): Promise<void> {
  worker = startWorker(options());
  await worker.ready;
}

async function killWorker(): Promise<void> {
  worker.kill('SIGKILL');
  await worker.exited;
}

/** Sends until it is refused for good. @returns tokens let in */
async function sendAll(org: TestOrg, api: TestApi): Promise<number> {
  let tokens = 0;
  await eventually(
    async () => {
      const answer = await org.send(api, 10);
      if (answer.status === 200) tokens += 10;
      return code(answer) === '429 rate_limited';
    },
    { what: 'a refusal' },
  );
  return tokens;
}

test('what waits in the log counts', async () => {
  const [org, free] = [await TestOrg.make([before]), await TestOrg.make([before])];
  await org.limit([before], { tokens: { hard_limit: LIMIT } });
  expect((await org.send(before, 20)).status).toBe(200);
  await org.landed(before, 20);
  await killWorker();
  for (let sent = 0; sent < 5; sent++) expect((await org.send(before, 10)).status).toBe(200);
  await before.close();

  const after = await startTestApi(options());
  try {
    const answer = await org.send(after, 10);
    expect([code(answer), answer.headers.get('retry-after')]).toEqual(['502 upstream_unavailable', '1']);
    expect((await free.send(after, 10)).status).toBe(200);
    await startsWorker();
    // 20 had landed, 50 waited.
    expect(await sendAll(org, after)).toBe(30);
  } finally {
    await after.close();
  }
});

test('what was stored counts, though ClickHouse comes last', async () => {
  const org = await TestOrg.make([before]);
  await org.limit([before], { tokens: { hard_limit: LIMIT } });
  expect((await org.send(before, 60)).status).toBe(200);
  await org.landed(before, 60);
  await before.close();
  await killWorker();
  await engine.kill();

  const after = await startTestApi(options());
  try {
    expect(code(await org.send(after, 10))).toBe('502 upstream_unavailable');
    await engine.start();
    await startsWorker();
    expect(await sendAll(org, after)).toBe(40);
  } finally {
    await after.close();
  }
});
