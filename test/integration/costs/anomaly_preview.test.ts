// The preview of the anomaly threshold: the days that it would have marked, from landed costs.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../support/wait.ts';
import { type Answer, call, type TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';
import { asOperator, aTenant, type Caller } from '../a_tenant.ts';

const DAY_MS = 86_400_000;
const dayBefore = (ago: number): string =>
  new Date((Math.floor(Date.now() / DAY_MS) - ago) * DAY_MS).toISOString().slice(0, 10);

interface Preview {
  z_threshold: number;
  lookback_days: number;
  days: { date: string; z: number; expected_usd: number; actual_usd: number }[];
}

let service: TestService;
let api: TestApi;
let org = '';
let key: Caller = {};

/** Costs from 12 days ago to yesterday: 1 and 3 in turns, with 9 five days ago and 50 yesterday. */
const costs = new Map(Array.from({ length: 12 }, (_, n) => [12 - n, n % 2 === 0 ? 1 : 3])).set(5, 9).set(1, 50);

beforeAll(async () => {
  service = await TestService.start();
  api = await service.startApi();
  ({ org, key } = await aTenant({ api }));
  const events = [...costs].map(([ago, cost_usd], index) => ({
    name: `step ${index}`,
    outcome: 'success',
    duration_ms: 0,
    started_at: `${dayBefore(ago)}T12:00:00Z`,
    attributes: { cost_usd },
  }));
  const sent = await call(api, 'POST', `/orgs/${org}/ingest/custom`, { headers: key, body: { events } });
  expect(sent.status).toBe(200);
  const sum = [...costs.values()].reduce((all, one) => all + one, 0);
  await eventually(
    async () => {
      const { json } = await call(api, 'GET', '/v1/cost/summary', { headers: key });
      return (json?.['data'] as { total_cost_usd: number }).total_cost_usd === sum;
    },
    { what: 'all costs' },
  );
});

afterAll(async () => {
  await service.close();
});

const ask = (query = ''): Promise<Answer> => call(api, 'GET', `/v1/cost/anomalies/preview${query}`, { headers: key });
const preview = async (query = ''): Promise<Preview> => (await ask(query)).json?.['data'] as Preview;
const marked = async (query: string): Promise<string[]> => (await preview(query)).days.map(({ date }) => date);

describe('the preview of the anomaly threshold', () => {
  it('takes the settings of the organization, and marks what the nightly job marks', async () => {
    const { days, ...config } = await preview();
    expect(config).toEqual({ z_threshold: 3, lookback_days: 30 });
    expect(days.map(({ date }) => date)).toEqual([dayBefore(5), dayBefore(1)]);
    const run = await call(api, 'POST', '/admin/jobs/anomalies/run', { headers: asOperator, body: {} });
    expect(run.status).toBe(200);
    const { json } = await call(api, 'GET', '/v1/cost/anomalies', { headers: key });
    const [found] = json?.['data'] as Preview['days'];
    const { date, z, expected_usd, actual_usd } = found ?? { date: '', z: 0, expected_usd: 0, actual_usd: 0 };
    expect(days[1]).toEqual({ date, z, expected_usd, actual_usd });
  });

  it('marks fewer days with a higher threshold, and none with the highest', async () => {
    const [, last] = (await preview()).days;
    expect(await marked(`?z_threshold=${((last?.z ?? 0) - 0.01).toFixed(2)}`)).toContain(dayBefore(1));
    expect(await marked('?z_threshold=99')).toEqual([]);
  });

  it('compares a day with as many days as asked', async () => {
    // Within 7 days before yesterday lies the day that cost 9, so that the days vary more than in 11 days.
    const [near, far] = [await preview('?lookback_days=7&days=2'), await preview('?lookback_days=11&days=2')];
    expect(near.days[0]?.z).toBeLessThan(far.days[0]?.z ?? 0);
    expect(near.lookback_days).toBe(7);
  });

  it('examines only the days that are asked for, and none with less than 7 days before it', async () => {
    expect(await marked('?days=3')).toEqual([dayBefore(1)]);
    expect(await marked('?z_threshold=0.001&days=30')).not.toContain(dayBefore(6));
    expect(await marked('?z_threshold=0.001&days=30')).toContain(dayBefore(5));
  });

  it('changes nothing', async () => {
    await preview('?z_threshold=1&lookback_days=9');
    const { json } = await call(api, 'GET', `/orgs/${org}/cost/anomaly-config`, { headers: key });
    expect(json?.['data']).toEqual({ z_threshold: 3, lookback_days: 30 });
  });

  it.each([
    ['z_threshold=0', 'z_threshold: '],
    ['z_threshold=x', 'z_threshold: must be a number above 0 and at most 99'],
    ['z_threshold=100', 'z_threshold: '],
    ['lookback_days=6', 'lookback_days: '],
    ['lookback_days=7.5', 'lookback_days: '],
    ['days=366', 'days: must be an integer between 1 and 365'],
  ])('rejects %s with 422 and the field', async (query, detail) => {
    const { status, json } = await ask(`?${query}`);
    expect([status, json?.['code']]).toEqual([422, 'invalid_request']);
    expect(json?.['detail']).toContain(detail);
  });
});
