// The forecast of use against limits, end to end: use that landed on twenty days, read on the
// twenty-first.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { startWorker, type TestWorker } from '../../support/pipeline.ts';
import { startTestApi, type TestApi } from '../api/an_api.ts';
import { TestOrg } from './a_budget.ts';

const today = new Date();
/** Returns noon (UTC) of a day of this month. */
const at = (day: number): number => Date.UTC(today.getUTCFullYear(), today.getUTCMonth(), day, 12);
const date = (day: number): string => new Date(at(day)).toISOString().slice(0, 10);
const DAYS = 20;

interface Resource {
  resource: string;
  used: number;
  by_day: { date: string; used: number }[];
  series: { date: string; predicted: number; lower_ci: number; upper_ci: number }[];
  hard_limit_reached: unknown;
  soft_limit_reached: unknown;
  days_of_data: number;
  mean_fallback: boolean;
  r_squared: number | null;
}

let database: TestDatabase;
let nats: TestNats;
let api: TestApi;
let worker: TestWorker;
let org: TestOrg;
let now = at(1);

beforeAll(async () => {
  [database, nats] = await Promise.all([createTestDatabase(), startTestNats()]);
  const options = { natsUrl: nats.url, clickhouseUrl: database.url, now: () => now };
  api = await startTestApi(options);
  worker = startWorker(options);
  await worker.ready;
  org = await TestOrg.make([api]);
  let sum = 0;
  for (let day = 1; day <= DAYS; day++) {
    now = at(day);
    expect((await org.send(api, 100 * day)).status).toBe(200);
    sum += 100 * day;
    // The next day begins once this one has landed, because a worker groups what it lands by the hour.
    await org.landed(api, sum);
  }
  now = at(DAYS + 1);
}, 120_000);

afterAll(async () => {
  worker.kill('SIGKILL');
  await worker.exited;
  await api.close();
  await nats.remove();
  await database.drop();
});

async function tokens(): Promise<Resource> {
  const answer = await org.call(api, 'GET', '/v1/budgets/forecast');
  expect(answer.status).toBe(200);
  const { resources } = answer.json?.['data'] as { resources: Resource[] };
  expect(resources.map(({ resource }) => resource)).toEqual(['tokens', 'storage_mb', 'sandbox_seconds', 'cost_usd']);
  return resources[0] as Resource;
}

describe('the forecast of use', () => {
  test('continues the use of the period by the line through its days', async () => {
    const { by_day, series, used, ...rest } = await tokens();
    expect(rest).toMatchObject({
      days_of_data: DAYS,
      mean_fallback: false,
      r_squared: expect.closeTo(1, 9) as number,
      hard_limit_reached: null,
      soft_limit_reached: null,
    });
    expect(used).toBe(21_000);
    expect(by_day).toHaveLength(DAYS + 1);
    expect(by_day.slice(-3)).toEqual([
      { date: date(19), used: 19_000 },
      { date: date(20), used: 21_000 },
      { date: date(21), used: 21_000 },
    ]);
    expect(series.slice(0, 2)).toEqual([
      {
        date: date(21),
        predicted: expect.closeTo(23_100, 3) as number,
        lower_ci: expect.closeTo(23_100, 1) as number,
        upper_ci: expect.closeTo(23_100, 1) as number,
      },
      expect.objectContaining({ date: date(22), predicted: expect.closeTo(25_300, 3) as number }) as unknown,
    ]);
  });

  test('names the days on which the limits are reached, also one that has passed', async () => {
    const set = await org.call(api, 'PUT', `/orgs/${org.id}/budget`, {
      tokens: { soft_limit: 15_300, hard_limit: 25_000 },
    });
    expect(set.status).toBe(200);
    expect(await tokens()).toMatchObject({
      soft_limit_reached: { expected: date(17), earliest: date(17) },
      hard_limit_reached: { expected: date(22), earliest: date(22) },
    });
  });

  test('names no day for a limit that lasts to the end of the period', async () => {
    await org.call(api, 'PUT', `/orgs/${org.id}/budget`, {
      tokens: { soft_limit: null, hard_limit: 1_000_000 },
    });
    expect(await tokens()).toMatchObject({
      soft_limit_reached: null,
      hard_limit_reached: { expected: null, earliest: null },
    });
  });
});
