// The preview of a hard limit, end to end: use that landed in three periods, read at a later time.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { startWorker, type TestWorker } from '../../support/pipeline.ts';
import { type Answer, startTestApi, type TestApi } from '../api/an_api.ts';
import { code, TestOrg } from './a_budget.ts';

const today = new Date();
/** Returns a time in the month that is `ahead` months after this one, in milliseconds (UTC). */
const at = (ahead: number, day: number): number =>
  Date.UTC(today.getUTCFullYear(), today.getUTCMonth() + ahead, day, 12);
const iso = (ahead: number, day: number): string => new Date(at(ahead, day)).toISOString().slice(0, 10);
const monthOf = (ahead: number): string => `${iso(ahead, 1)}T00:00:00.000Z`;

let database: TestDatabase;
let nats: TestNats;
let api: TestApi;
let worker: TestWorker;
let org: TestOrg;
let now = 0;

beforeAll(async () => {
  [database, nats] = await Promise.all([createTestDatabase(), startTestNats()]);
  const options = { natsUrl: nats.url, clickhouseUrl: database.url, now: () => now };
  now = at(0, 28);
  api = await startTestApi(options);
  worker = startWorker(options);
  await worker.ready;
  org = await TestOrg.make([api]);
  // 100 tokens a day for three days of this month, 300 a day for two days of the next one, half of
  // them by one agent, and nothing in the month after.
  for (const day of [25, 26, 27]) await sendAt(at(0, day), 100);
  await org.landed(api, 300);
  for (const day of [5, 9]) {
    await sendAt(at(1, day), 150);
    await sendAt(at(1, day), 150, 'planner');
  }
  now = at(1, 28);
  await org.landed(api, 600);
  now = at(2, 3);
}, 90_000);

afterAll(async () => {
  worker.kill('SIGKILL');
  await worker.exited;
  await api.close();
  await nats.remove();
  await database.drop();
});

async function sendAt(time: number, tokens: number, agent_id?: string): Promise<void> {
  now = time;
  const sent = await org.send(api, tokens, agent_id === undefined ? {} : { agent_id });
  expect(sent.status).toBe(200);
}
const preview = (query: string): Promise<Answer> => org.call(api, 'GET', `/v1/budgets/preview?${query}`);
const periods = async (query: string): Promise<unknown> =>
  ((await preview(query)).json?.['data'] as { periods: unknown }).periods;

describe('the preview of a hard limit', () => {
  test('names the day on which use reached it in the current period and in the two before', async () => {
    expect(await preview('hard_limit=200')).toMatchObject({
      status: 200,
      json: {
        data: {
          resource: 'tokens',
          hard_limit: 200,
          agent_id: null,
          periods: [
            { period_start: monthOf(2), period_end: monthOf(3), used: 0, reached_on: null, beyond_limit: 0 },
            { period_start: monthOf(1), used: 600, reached_on: iso(1, 5), beyond_limit: 400 },
            { period_start: monthOf(0), used: 300, reached_on: iso(0, 26), beyond_limit: 100 },
          ],
        },
      },
    });
  });

  test('counts a limit as reached when use equals it, as the refusal does', async () => {
    expect(await periods('hard_limit=300')).toMatchObject([
      { reached_on: null },
      { reached_on: iso(1, 5), beyond_limit: 300 },
      { reached_on: iso(0, 27), beyond_limit: 0 },
    ]);
    expect(await periods('hard_limit=301')).toMatchObject([{}, { reached_on: iso(1, 9) }, { reached_on: null }]);
  });

  test('counts only the tokens of an agent for a limit of the agent', async () => {
    expect(await periods('hard_limit=200&agent_id=planner')).toMatchObject([
      { used: 0 },
      { used: 300, reached_on: iso(1, 9), beyond_limit: 100 },
      { used: 0, reached_on: null },
    ]);
  });

  test('finds a limit of 0 reached on the first day of every period', async () => {
    expect(await periods('hard_limit=0&resource=sandbox_seconds')).toMatchObject([
      { reached_on: iso(2, 1) },
      { reached_on: iso(1, 1) },
      { reached_on: iso(0, 1) },
    ]);
  });

  test('reads the use of storage in megabytes', async () => {
    const [, month] = (await periods('hard_limit=1&resource=storage_mb')) as { used: number; reached_on: unknown }[];
    expect(month?.used).toBeGreaterThan(0);
    expect(month?.used).toBeLessThan(1);
    expect(month?.reached_on).toBeNull();
  });

  test('changes nothing', async () => {
    expect((await org.budget(api)).tokens).toMatchObject({ soft_limit: null, hard_limit: null });
  });

  test.each([
    ['', 'hard_limit'],
    ['hard_limit=-1', 'hard_limit: must be a whole number from 0 to 1000000000000000'],
    ['hard_limit=9999999999999999', 'hard_limit: must be a whole number from 0 to 1000000000000000'],
    ['hard_limit=1&resource=credits', 'resource'],
    [
      'hard_limit=1&resource=storage_mb&agent_id=planner',
      'agent_id: is accepted for the resources tokens and cost_usd only',
    ],
    ['hard_limit=1.5', 'hard_limit: must be a whole number from 0 to 1000000000000000'],
    ['hard_limit=2000000000&resource=cost_usd', 'hard_limit: must be a whole number'],
  ])('rejects "%s" with 422 and the field', async (query, field) => {
    const refused = await preview(query);
    expect(code(refused)).toBe('422 invalid_request');
    expect(refused.json?.['detail']).toContain(field);
  });
});
