// All processes stop at once, as after a power failure. The API process that starts first counts
// the backlog of the ingest log itself, and reads from ClickHouse what has landed. Until it knows
// both, it admits nothing for an organization with a hard limit; other organizations do not wait.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { runStatement, startTestEngine, type TestEngine } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { startWorker, type TestWorker } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';
import { call, startTestApi, type TestApi } from '../api/an_api.ts';
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

/**
 * Sends events until the API rejects one. An event without a confirmation is sent again unchanged.
 * @returns the number of admitted tokens
 */
async function sendAll(org: TestOrg, api: TestApi): Promise<number> {
  let tokens = 0;
  await eventually(
    async () => {
      const answer = await org.send(api, 10, { question: `after ${tokens}` });
      if (answer.status === 200) tokens += 10;
      return code(answer) === '429 rate_limited';
    },
    { what: 'a refusal' },
  );
  return tokens;
}

const readyz = async (api: TestApi) => (await call(api, 'GET', '/readyz')).json?.['checks'] as Record<string, string>;
const knowsBudgets = (api: TestApi) =>
  eventually(async () => (await readyz(api))['budgets'] === 'ok', { what: 'hard limits that can be decided' });

test('a process that starts rejects at the exact limit before anything of the existing log has landed', async () => {
  const [org, free] = [await TestOrg.make([before]), await TestOrg.make([before])];
  await org.limit([before], { tokens: { hard_limit: LIMIT } });
  expect((await org.send(before, 20)).status).toBe(200);
  await org.landed(before, 20);
  await killWorker();
  for (let sent = 0; sent < 5; sent++) expect((await org.send(before, 10)).status).toBe(200);
  await before.close();

  const after = await startTestApi(options());
  try {
    expect((await free.send(after, 10)).status).toBe(200);
    await knowsBudgets(after);
    expect((await readyz(after))['consumers']).toBe('down');
    // 20 tokens have landed, and 50 wait in the ingest log.
    expect(await sendAll(org, after)).toBe(30);
    await startsWorker();
    await org.landed(after, LIMIT);
    expect(code(await org.send(after, 0))).toBe('429 rate_limited');
    await org.limit([after], { tokens: { hard_limit: LIMIT + 1 } });
    expect((await org.send(after, 1)).status).toBe(200);
    expect(code(await org.send(after, 0))).toBe('429 rate_limited');
  } finally {
    await after.close();
  }
});

test("a second process that starts beside the first counts the first one's events in the log once", async () => {
  const org = await TestOrg.make([before]);
  await org.limit([before], { tokens: { hard_limit: LIMIT } });
  await killWorker();
  for (let sent = 0; sent < 5; sent++) expect((await org.send(before, 10)).status).toBe(200);
  const second = await startTestApi(options());
  try {
    await knowsBudgets(second);
    await before.close();
    expect(await sendAll(org, second)).toBe(50);
  } finally {
    await second.close();
  }
});

test('a new organization is admitted at once, however much of an existing log has not landed', async () => {
  const old = await TestOrg.make([before]);
  await old.limit([before], { tokens: { hard_limit: LIMIT } });
  await killWorker();
  expect((await old.send(before, 10)).status).toBe(200);
  await before.close();
  await engine.kill();
  const after = await startTestApi(options());
  try {
    expect(code(await old.send(after, 10))).toBe('502 upstream_unavailable');
    await engine.start();
    const fresh = await TestOrg.make([after]);
    await eventually(
      async () =>
        (await fresh.call(after, 'PUT', `/orgs/${fresh.id}/budget`, { tokens: { hard_limit: LIMIT } })).status === 200,
      { what: 'the limit' },
    );
    expect((await fresh.send(after, 60)).status).toBe(200);
    expect((await fresh.send(after, 40)).status).toBe(200);
    expect(code(await fresh.send(after, 0))).toBe('429 rate_limited');
  } finally {
    await after.close();
  }
});

const unreadAccounts = async (api: TestApi): Promise<number> =>
  Number(/^millrace_budget_accounts_unread\S* (\d+)$/m.exec((await call(api, 'GET', '/metrics')).text)?.[1]);

test('stored events count although ClickHouse starts last', async () => {
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
    await eventually(async () => (await unreadAccounts(after)) > 0, { what: 'an account that cannot be read' });
    await engine.start();
    await eventually(async () => (await unreadAccounts(after)) === 0, { what: 'every account read' });
    expect(await sendAll(org, after)).toBe(40);
    await startsWorker();
  } finally {
    await after.close();
  }
});
