// Traffic across the end of a period, with the clocks of two APIs set to that time: every event
// counts in exactly one period, and the limit of the old period rejects nothing in the new one. The
// pipeline counts an event in the hour in which an API received it.
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { startWorker, type TestWorker } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';
import { startTestApi, type TestApi } from '../api/an_api.ts';
import { code, TestOrg } from './a_budget.ts';

vi.setConfig({ testTimeout: 90_000 });

let database: TestDatabase;
let nats: TestNats;
let apis: [TestApi, TestApi];
let worker: TestWorker;
let now = 0;

const today = new Date();
/** Start of the next month, and of the month after it, in milliseconds (UTC). */
const BOUNDARY = Date.UTC(today.getUTCFullYear(), today.getUTCMonth() + 1);
const AFTER = Date.UTC(today.getUTCFullYear(), today.getUTCMonth() + 2);
const BEFORE = Date.UTC(today.getUTCFullYear(), today.getUTCMonth());
const iso = (at: number): string => new Date(at).toISOString();

beforeAll(async () => {
  [database, nats] = await Promise.all([createTestDatabase(), startTestNats()]);
  const options = { natsUrl: nats.url, clickhouseUrl: database.url, now: () => now };
  now = BOUNDARY - 60_000;
  apis = [await startTestApi(options), await startTestApi(options)];
  worker = startWorker(options);
  await worker.ready;
}, 60_000);

afterAll(async () => {
  worker.kill('SIGKILL');
  await worker.exited;
  for (const api of apis) await api.close();
  await nats.remove();
  await database.drop();
});

/**
 * Sends `count` requests of `tokens` tokens alternately to both APIs, each at the API time
 * `at(index)`.
 * @returns the number of admitted requests
 */
async function flow(org: TestOrg, count: number, tokens: number, at: (index: number) => number): Promise<number> {
  let accepted = 0;
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) {
      now = at(index);
      const answer = await org.send(index % 2 === 0 ? apis[0] : apis[1], tokens);
      if (answer.status === 200) accepted++;
      else expect(code(answer)).toBe('429 rate_limited');
    }
  };
  await Promise.all(Array.from({ length: 8 }, lane));
  return accepted;
}

test('each event around the end of a month counts in exactly one month', async () => {
  now = BOUNDARY - 60_000;
  const org = await TestOrg.make(apis);
  await org.limit(apis, { tokens: { hard_limit: 1_000_000 } });
  // The clock passes the boundary in steps of 10 ms.
  expect(await flow(org, 200, 10, (index) => BOUNDARY - 1000 + index * 10)).toBe(200);
  const hours = async () =>
    (
      await database.run(
        `SELECT toUnixTimestamp(hour) * 1000, sum(input_tokens) FROM usage_events WHERE org_id = '${org.id}' GROUP BY hour ORDER BY hour FORMAT TSV`,
      )
    )
      .trim()
      .split('\n')
      .map((line) => line.split('\t').map(Number));
  await eventually(async () => (await hours()).reduce((sum, [, tokens = 0]) => sum + tokens, 0) === 2000, {
    what: 'all landed',
    withinMs: 30_000,
  });
  const [old, fresh] = await hours();
  expect([old?.[0], fresh?.[0]]).toEqual([BOUNDARY - 3_600_000, BOUNDARY]);
  for (const api of apis) {
    now = BOUNDARY - 1;
    expect(await org.budget(api)).toMatchObject({
      period: 'month',
      period_start: iso(BEFORE),
      period_end: iso(BOUNDARY),
      tokens: { used: old?.[1] },
    });
    now = BOUNDARY;
    expect(await org.budget(api)).toMatchObject({
      period_start: iso(BOUNDARY),
      period_end: iso(AFTER),
      tokens: { used: fresh?.[1] },
    });
  }
  expect((old?.[1] ?? 0) + (fresh?.[1] ?? 0)).toBe(2000);
});

test.each([
  ['which has landed', true],
  ['none of which has landed', false],
])('the limit of the old month, %s, rejects nothing in the new one', async (_, landed) => {
  now = BOUNDARY - 5000;
  const org = await TestOrg.make(apis);
  await org.limit(apis, { tokens: { soft_limit: 50, hard_limit: 100 } });
  if (!landed) worker.kill('SIGSTOP');
  expect((await org.send(apis[0], 100)).status).toBe(200);
  if (landed) await org.landed(apis[0], 100);
  const refused = await org.send(apis[0], 1);
  expect(code(refused)).toBe('429 rate_limited');
  expect(refused.headers.get('retry-after')).toBe('5');
  await eventually(async () => code(await org.send(apis[1], 1)) === '429 rate_limited', {
    what: 'a refusal in the other',
  });
  now = BOUNDARY - 1;
  expect((await org.send(apis[0], 1)).headers.get('retry-after')).toBe('1');
  now = BOUNDARY;
  for (const api of apis) {
    expect((await org.send(api, 30)).status).toBe(200);
    expect(await org.budget(api)).toMatchObject({ period_start: iso(BOUNDARY) });
  }
  if (!landed) worker.kill('SIGCONT');
  await org.landed(apis[0], 60);
  expect((await org.budget(apis[1])).tokens).toEqual({
    used: 60,
    soft_limit: 50,
    hard_limit: 100,
    percentage: 60,
    status: 'soft_exceeded',
  });
  expect((await org.send(apis[0], 40)).status).toBe(200);
  for (const api of apis)
    await eventually(async () => code(await org.send(api, 1)) === '429 rate_limited', {
      what: 'the new month used up',
    });
  now = BOUNDARY - 1;
  expect((await org.budget(apis[0])).tokens.used).toBe(100);
});

test('a policy changed in the middle of a period applies at once; a fiscal year starts over in its month', async () => {
  // The clock is in the last month of a fiscal year that began eleven months earlier.
  const first = new Date(BOUNDARY).getUTCMonth() + 1;
  const yearBefore = Date.UTC(new Date(BOUNDARY).getUTCFullYear() - 1, first - 1);
  now = BOUNDARY - 40 * 86_400_000;
  const org = await TestOrg.make(apis);
  await org.limit(apis, { tokens: { hard_limit: 100 } });
  expect((await org.send(apis[0], 90)).status).toBe(200);
  await org.landed(apis[0], 90);
  now = BOUNDARY - 2000;
  for (const api of apis) expect((await org.budget(api)).tokens.used).toBe(0);
  expect((await org.send(apis[1], 5)).status).toBe(200);
  await org.landed(apis[0], 5);
  await org.policy(apis[0], { period: 'fiscal_year', fiscal_year_start_month: first }, now);
  for (const api of apis) {
    await eventually(async () => (await org.budget(api)).period === 'fiscal_year', { what: 'the policy' });
    expect(await org.budget(api)).toMatchObject({
      period_start: iso(yearBefore),
      period_end: iso(BOUNDARY),
      tokens: { used: 95 },
    });
  }
  expect((await org.send(apis[0], 5)).status).toBe(200);
  for (const api of apis)
    await eventually(async () => code(await org.send(api, 1)) === '429 rate_limited', { what: 'the year used up' });
  now = BOUNDARY;
  for (const api of apis) expect((await org.send(api, 1)).status).toBe(200);
  await org.landed(apis[0], 2);
  expect(await org.budget(apis[1])).toMatchObject({
    period: 'fiscal_year',
    period_start: iso(BOUNDARY),
    tokens: { used: 2 },
  });
});
