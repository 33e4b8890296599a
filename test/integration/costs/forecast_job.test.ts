// The job that reports limits that an organization is forecast to reach, on the real engine.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createLogger } from '../../../ops/platform/logger.ts';
import { type ForecastDeps, createForecast, type RunBucket } from '../../../pipeline/jobs/forecast.ts';
import type { JobEvent } from '../../../pipeline/jobs/job_event.ts';
import { type BudgetRecord, type BudgetState, NO_LIMITS } from '../../../schemas/records/budget.ts';
import { orgKey } from '../../../schemas/records/org.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, type TestStore } from '../../support/store.ts';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const NOW = Date.parse('2026-03-21T06:00:00Z');
const TODAY = Date.parse('2026-03-21T00:00:00Z');

let store: TestStore;
let told: JobEvent[];
let states: Map<string, BudgetState>;

beforeAll(async () => {
  store = await openTestStore();
});
afterAll(() => store.close());
beforeEach(async () => {
  told = [];
  states = new Map();
  await store.database.run('TRUNCATE TABLE usage_events');
});

const aBudget = (org_id: string, tokens: number | null, storage_mb: number | null = null): BudgetRecord => ({
  org_id,
  tokens: { soft_limit: null, hard_limit: tokens },
  storage_mb: { soft_limit: null, hard_limit: storage_mb },
  sandbox_seconds: NO_LIMITS,
  cost_usd: NO_LIMITS,
  agents: {},
  agent_costs: {},
  alerts: null,
  updated_at: '2026-01-01T00:00:00.000Z',
});

function bucketOf<T extends { org_id: string }>(held: Map<string, T>): RunBucket<T> {
  return {
    values: () => held.values(),
    get: (key) => held.get(key),
    change: (key, apply) => {
      const changed = apply(held.get(key));
      if (changed !== null) held.set(key, changed);
      return Promise.resolve(held.get(key));
    },
    close: () => undefined,
  };
}

function run(budgets: readonly BudgetRecord[], now = NOW, over: Partial<ForecastDeps> = {}) {
  return createForecast({
    clickhouse: store.client,
    openBudgets: () => Promise.resolve(bucketOf(new Map(budgets.map((one) => [orgKey(one.org_id), one])))),
    openStates: () => Promise.resolve(bucketOf(states)),
    ruleOf: () => Promise.resolve({ period: 'month', fiscal_year_start_month: 1 }),
    publish: (event) => {
      told.push(event);
      return Promise.resolve();
    },
    ...over,
  })({ now, signal: new AbortController().signal, log: createLogger('test', 'silent') });
}

/**
 * Lands 100 tokens and 1 MB for each of the `days` days before today, and `today` tokens for today.
 */
const land = (org_id: string, days: number, today = 0) =>
  store.landSpans([
    ...Array.from({ length: days }, (_, n) =>
      aSpan({
        org_id,
        received_at: TODAY - (n + 1) * DAY_MS + HOUR_MS,
        input_tokens: 60 + (n % 2),
        output_tokens: 40 - (n % 2),
        storage_bytes: 1_000_000 + (n % 2),
      }),
    ),
    aSpan({ org_id, received_at: TODAY + HOUR_MS, input_tokens: today, output_tokens: 0, storage_bytes: 0 }),
  ]);

describe('job forecast', () => {
  it('the job forecast reports once a period a limit that will be reached', async () => {
    await land('org_a', 40);
    // March has 2,000 tokens in 20 days, 100 a day: the forecast reaches 2,450 on the fifth day
    // from today, 25 March.
    const budgets = [aBudget('org_a', 2450, 1000)];
    expect(await run(budgets)).toEqual({ limits: 2, breaches: 1, told: 1 });
    expect(told).toHaveLength(1);
    expect(told[0]).toMatchObject({
      event: 'cost.forecast_breach',
      org_id: 'org_a',
      payload: {
        event: 'cost.forecast_breach',
        org_id: 'org_a',
        resource: 'tokens',
        predicted: expect.closeTo(3100, 6) as number,
        threshold: 2450,
        date: '2026-03-25',
        severity: 'warning',
        period_start: '2026-03-01T00:00:00.000Z',
      },
    });
    expect(await run(budgets, NOW + DAY_MS)).toEqual({ limits: 2, breaches: 1, told: 0 });
    expect(told).toHaveLength(1);
    // The next period is reported separately.
    expect(await run([aBudget('org_a', 1)], Date.parse('2026-04-02T00:00:00Z'))).toMatchObject({ told: 1 });
    expect(told[1]?.event_id).not.toBe(told[0]?.event_id);
  });

  it('limits that will not be reached, are reached already or are not set cause no report', async () => {
    await land('org_a', 40);
    expect(await run([aBudget('org_a', 3200)])).toEqual({ limits: 1, breaches: 0, told: 0 });
    expect(await run([aBudget('org_a', 2000)])).toEqual({ limits: 1, breaches: 0, told: 0 });
    expect(await run([aBudget('org_a', null)])).toEqual({ limits: 0, breaches: 0, told: 0 });
    expect(await run([aBudget('org_nobody', 5)])).toEqual({ limits: 1, breaches: 0, told: 0 });
  });

  it('only the part of today still to come counts', async () => {
    await land('org_a', 40, 90);
    // 2,090 tokens are used; the forecast adds 10 today, then 100 a day for ten days.
    expect(await run([aBudget('org_a', 2101)])).toMatchObject({ told: 1 });
    expect(told[0]?.payload).toMatchObject({
      date: '2026-03-22',
      severity: 'critical',
      predicted: expect.closeTo(3100, 0) as number,
    });
  });

  it('a run that ended before its report was recorded sends it again under the same id', async () => {
    await land('org_a', 40);
    const openStates = () =>
      Promise.resolve({
        ...bucketOf(states),
        change: () => Promise.reject(new Error('no connection')),
      } satisfies RunBucket<BudgetState>);
    await expect(run([aBudget('org_a', 2450)], NOW, { openStates })).rejects.toThrow('no connection');
    expect(await run([aBudget('org_a', 2450)])).toMatchObject({ told: 1 });
    expect(told).toHaveLength(2);
    expect(told[1]).toEqual(told[0]);
  });

  it('the record of other budget alerts stays unchanged', async () => {
    await land('org_a', 40);
    const period = '2026-03-01T00:00:00.000Z';
    const before: BudgetState = { org_id: 'org_a', periods: { [period]: { crossings: {}, told: ['soft:tokens:5'] } } };
    states.set(orgKey('org_a'), before);
    await run([aBudget('org_a', 2450)]);
    expect(states.get(orgKey('org_a'))).toEqual({
      org_id: 'org_a',
      periods: { [period]: { crossings: {}, told: ['soft:tokens:5', 'forecast:tokens'] } },
    });
  });
});
