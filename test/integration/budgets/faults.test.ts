// Budgets during failures: the worker is killed, nats-server restarts, clients send events again.
// In the end the budget shows the sum of the landed and acknowledged use, each event once, and
// every API rejects by exactly that number.
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startTestEngine, type TestEngine } from '../../support/clickhouse.ts';
import { runStatement } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { startWorker, type TestWorker } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';
import { startTestApi, type TestApi } from '../api/an_api.ts';
import { code, TestOrg } from './a_budget.ts';

vi.setConfig({ testTimeout: 180_000 });

const TOKENS = 10;
const LIMIT = 4000;
const LANES = 8;

let engine: TestEngine;
let nats: TestNats;
let apis: [TestApi, TestApi];
let worker: TestWorker;

beforeAll(async () => {
  [engine, nats] = await Promise.all([startTestEngine(), startTestNats()]);
  await runStatement(engine.url, 'CREATE DATABASE millrace', '');
  const options = { natsUrl: nats.url, clickhouseUrl: engine.url };
  apis = [await startTestApi(options), await startTestApi(options)];
  worker = startWorker(options);
  await worker.ready;
}, 90_000);

afterAll(async () => {
  worker.kill('SIGKILL');
  await worker.exited;
  for (const api of apis) await api.close();
  await nats.remove();
  await engine.remove();
});

async function killWorker(): Promise<void> {
  worker.kill('SIGKILL');
  await worker.exited;
  worker = startWorker({ natsUrl: nats.url, clickhouseUrl: engine.url });
  await worker.ready;
}

async function restartNats(): Promise<void> {
  await nats.kill();
  await nats.start();
}

/** Returns the tokens of an organization that the store holds. */
const stored = async (org: TestOrg): Promise<number> =>
  Number(
    await runStatement(
      engine.url,
      `SELECT sum(input_tokens + output_tokens) FROM usage_events WHERE org_id = '${org.id}'`,
    ),
  );

test('use is what landed and what was acknowledged, whatever failed, and events are rejected exactly at the limit', async () => {
  const org = await TestOrg.make(apis);
  await org.limit(apis, { tokens: { hard_limit: LIMIT } });
  // Questions of acknowledged events, and of events answered with 502, which may be stored or not.
  const known = new Set<string>();
  const unknown = new Set<string>();
  let next = 0;
  let refused = 0;
  const lane = async (): Promise<void> => {
    while (refused < LANES) {
      const question = `event ${next++}`;
      const api = apis[next % 2] ?? apis[0];
      // Some events are sent twice, as by a client that has lost the answer.
      for (let times = next % 5 === 0 ? 2 : 1; times > 0; times--) {
        const answer = await org.send(api, TOKENS, { question });
        if (answer.status === 200) known.add(question);
        else if (answer.status === 429) refused++;
        else {
          expect(answer.status).toBe(502);
          unknown.add(question);
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      }
    }
  };
  const lanes = Promise.all(Array.from({ length: LANES }, lane));
  const reached = (part: number) =>
    eventually(() => known.size * TOKENS >= LIMIT * part, { what: 'the flow', withinMs: 60_000 });
  const ended = lanes.then(() => true);
  const faults = async (): Promise<void> => {
    await reached(0.2);
    await killWorker();
    await reached(0.4);
    await restartNats();
    await reached(0.6);
    await killWorker();
  };
  await Promise.all([ended, faults()]);
  // Every acknowledged event has landed once; some of the unacknowledged events have landed too.
  const acknowledged = known.size * TOKENS;
  await eventually(async () => (await stored(org)) >= acknowledged, { what: 'all landed', withinMs: 60_000 });
  // Unacknowledged events are sent again: each is now acknowledged or rejected.
  const fates = await Promise.all(
    [...unknown].filter((question) => !known.has(question)).map((question) => org.send(apis[0], TOKENS, { question })),
  );
  for (const { status } of fates) expect([200, 429]).toContain(status);
  const distinct = async (): Promise<number> =>
    Number(await runStatement(engine.url, `SELECT uniqExact(span_id) FROM spans WHERE org_id = '${org.id}'`));
  const rows = async (): Promise<number> =>
    Number(await runStatement(engine.url, `SELECT count() FROM spans WHERE org_id = '${org.id}'`));
  // Tables land one after the other, and the events admitted last may still be in the ingest log.
  // Wait until both tables agree.
  await eventually(
    async () => (await distinct()) * TOKENS === (await stored(org)) && (await distinct()) >= known.size,
    {
      what: 'usage and spans that agree',
    },
  );
  const questions = await distinct();
  expect(await rows()).toBe(questions);
  expect(questions).toBeLessThanOrEqual(new Set([...known, ...unknown]).size);
  expect(questions).toBeGreaterThanOrEqual(known.size);
  for (const api of apis) expect((await org.budget(api)).tokens.used).toBe(await stored(org));
  // Each API's account holds exactly that number: with a limit one token higher, it admits one
  // token and rejects the next.
  const used = await stored(org);
  for (const [index, api] of apis.entries()) {
    await org.limit(apis, { tokens: { hard_limit: used + index + 1 } });
    await eventually(async () => (await org.send(api, 1)).status === 200, { what: 'the token that is left' });
    for (const other of apis)
      await eventually(async () => code(await org.send(other, 0)) === '429 rate_limited', { what: 'a refusal' });
    await org.landed(api, used + index + 1);
    expect((await org.budget(api)).tokens.used).toBe(used + index + 1);
  }
});

test('while ClickHouse is away budgets are 502, ingest continues and the limit holds; admitted events land afterwards', async () => {
  const org = await TestOrg.make(apis);
  await org.limit(apis, { tokens: { hard_limit: 100 } });
  expect((await org.send(apis[0], 40)).status).toBe(200);
  await org.landed(apis[0], 40);
  await engine.kill();
  expect(code(await org.call(apis[0], 'GET', '/v1/budgets'))).toBe('502 upstream_unavailable');
  expect(code(await org.call(apis[0], 'GET', `/orgs/${org.id}/budget/agents`))).toBe('502 upstream_unavailable');
  // A change that fails with 502 is not made.
  expect(code(await org.call(apis[0], 'PUT', `/orgs/${org.id}/budget`, { tokens: { hard_limit: 5 } }))).toBe(
    '502 upstream_unavailable',
  );
  expect((await org.send(apis[0], 30)).status).toBe(200);
  expect((await org.send(apis[1], 30)).status).toBe(200);
  for (const api of apis)
    await eventually(async () => code(await org.send(api, 0)) === '429 rate_limited', {
      what: 'the limit without the store',
    });
  await engine.start();
  await org.landed(apis[0], 100);
  expect((await org.budget(apis[0])).tokens).toMatchObject({ used: 100, status: 'hard_exceeded' });
  expect(code(await org.send(apis[1], 0))).toBe('429 rate_limited');
});

test('an API process that starts while ClickHouse is away rejects by the recorded limits, and reads the rest later', async () => {
  const [full, free] = [await TestOrg.make(apis), await TestOrg.make(apis)];
  for (const org of [full, free]) {
    await org.limit(apis, { tokens: { hard_limit: 100 } });
    expect((await org.send(apis[0], org === full ? 100 : 60)).status).toBe(200);
    await org.landed(apis[0], org === full ? 100 : 60);
  }
  // The worker stores the crossing once it has published the alert.
  const states = await apis[0].log.bucket('budget_states');
  await eventually(
    async () => {
      for await (const key of await states.keys())
        if ((await states.get(key))?.string().includes(full.id) === true) return true;
      return false;
    },
    { what: 'the crossing written down' },
  );
  await engine.kill();
  const later = await startTestApi({ natsUrl: nats.url, clickhouseUrl: engine.url });
  try {
    expect(code(await full.send(later, 1))).toBe('429 rate_limited');
    expect((await free.send(later, 1)).status).toBe(200);
    await engine.start();
    await eventually(async () => (await free.budget(later)).tokens.used === 61, {
      what: 'the store is back',
      withinMs: 30_000,
    });
    expect((await free.send(later, 39)).status).toBe(200);
    await eventually(async () => code(await free.send(later, 0)) === '429 rate_limited', {
      what: 'what was used before',
    });
  } finally {
    await later.close();
  }
});
