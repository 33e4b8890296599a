// The job that looks for cost anomalies, on the real engine: how it resumes after an interruption,
// and when it looks again.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createLogger } from '../../../ops/platform/logger.ts';
import { createAnomalies } from '../../../pipeline/jobs/anomalies.ts';
import type { JobEvent } from '../../../pipeline/jobs/job_event.ts';
import { DEFAULT_ANOMALY_CONFIG } from '../../../schemas/records/cost_config.ts';
import { readAnomalies } from '../../../sql/stores/costs.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, type TestStore } from '../../support/store.ts';

const DAY_MS = 86_400_000;
const TODAY = Date.parse('2026-03-10T00:00:00Z');
const NOON = TODAY + DAY_MS / 2;
const USD = 1_000_000_000_000n;

let store: TestStore;
let told: JobEvent[];

beforeAll(async () => {
  store = await openTestStore();
});
afterAll(() => store.close());
beforeEach(async () => {
  told = [];
  await store.database.run('TRUNCATE TABLE usage_events');
  await store.database.run('TRUNCATE TABLE anomalies');
});

const run = (now: number, over: Partial<Parameters<typeof createAnomalies>[0]> = {}) =>
  createAnomalies({
    clickhouse: store.client,
    configOf: () => Promise.resolve(DEFAULT_ANOMALY_CONFIG),
    publish: (event) => {
      told.push(event);
      return Promise.resolve();
    },
    ...over,
  })({ now, signal: new AbortController().signal, log: createLogger('test', 'silent') });

/** Lands costs of an organization: the keys are days before TODAY, the values USD. */
const land = (org_id: string, costs: Record<number, number>) =>
  store.landSpans(
    Object.entries(costs).map(([ago, usd]) =>
      aSpan({
        org_id,
        started_at: TODAY - Number(ago) * DAY_MS,
        cost_pico_usd: (BigInt(usd * 100) * USD) / 100n,
        model: 'm',
        agent_id: 'a',
      }),
    ),
  );
const history = (usual: number, days = 12): Record<number, number> =>
  Object.fromEntries(Array.from({ length: days }, (_, n) => [n + 2, usual]));
const anomalies = (org_id: string) => readAnomalies(store.client, { org_id });

describe('job anomalies', () => {
  it('the job anomalies examines today and yesterday, with one row an organization and day', async () => {
    await land('org_a', { ...history(1), 1: 5, 0: 900 });
    await land('org_b', { ...history(1), 1: 1, 0: 1 });
    expect(await run(NOON)).toEqual({ orgs: 2, anomalies: 2, found: 2 });
    expect((await anomalies('org_a')).map(({ date, expected, actual }) => [date, expected, actual])).toEqual([
      // Yesterday is part of today's history: (12 + 5) / 13.
      ['2026-03-10', '1.307692307692', '900'],
      ['2026-03-09', '1', '5'],
    ]);
    expect(await anomalies('org_b')).toEqual([]);
    expect(told.map(({ org_id, payload }) => [org_id, payload['date']])).toEqual([
      ['org_a', '2026-03-09'],
      ['org_a', '2026-03-10'],
    ]);
  });

  it('a day that cost too little is found when it is over, not before', async () => {
    await land('org_a', { ...history(10), 1: 10 });
    expect(await run(NOON)).toMatchObject({ anomalies: 0 });
    expect(await run(NOON + DAY_MS)).toEqual({ orgs: 1, anomalies: 1, found: 1 });
    expect(await anomalies('org_a')).toMatchObject([
      { date: '2026-03-10', z: -99, actual: '0', expected: '10', model: 'm', agent_id: 'a' },
    ]);
  });

  it('a second run updates the row and sends no new event', async () => {
    await land('org_a', { ...history(1), 1: 1, 0: 4 });
    await run(NOON);
    const [first] = await anomalies('org_a');
    await land('org_a', { 0: 2 });
    expect(await run(NOON + 3_600_000)).toEqual({ orgs: 1, anomalies: 1, found: 0 });
    expect(await anomalies('org_a')).toEqual([{ ...first, actual: '6' }]);
    expect(told).toHaveLength(1);
  });

  it('a run that ended before its row was written sends the event again under the same id', async () => {
    await land('org_a', { ...history(1), 1: 1, 0: 4 });
    const cut = run(NOON, {
      publish: async (event) => {
        told.push(event);
        await store.database.run('RENAME TABLE anomalies TO anomalies_away');
      },
    });
    await expect(cut).rejects.toThrow();
    await store.database.run('RENAME TABLE anomalies_away TO anomalies');
    expect(await anomalies('org_a')).toEqual([]);
    expect(await run(NOON)).toMatchObject({ found: 1 });
    expect(told).toHaveLength(2);
    expect(told[1]).toEqual(told[0]);
    expect(told[0]?.event_id).toMatch(/^evt_[0-9a-f]{16}$/);
    expect(await anomalies('org_a')).toHaveLength(1);
  });

  it('an event that cannot be sent leaves no row, and the run continues with the other organizations', async () => {
    for (const org_id of ['org_a', 'org_b', 'org_c']) await land(org_id, { ...history(1), 1: 1, 0: 4 });
    const failing = run(NOON, {
      publish: (event) =>
        event.org_id === 'org_b' ? Promise.reject(new Error('no answer')) : Promise.resolve(void told.push(event)),
    });
    await expect(failing).rejects.toThrow('no answer');
    expect(
      await Promise.all(['org_a', 'org_b', 'org_c'].map(async (org_id) => (await anomalies(org_id)).length)),
    ).toEqual([1, 0, 1]);
    expect(await run(NOON)).toEqual({ orgs: 3, anomalies: 3, found: 1 });
  });
});
