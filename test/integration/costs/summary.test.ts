// Costs by day on the real engine, with rows landed by the pipeline's own statements.
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readForecast } from '../../../api/telemetry/costs/forecast.ts';
import { readRollup } from '../../../api/telemetry/costs/outcomes.ts';
import type { Group } from '../../../api/telemetry/costs/schema.ts';
import { readSummary, type SummaryAnswer } from '../../../api/telemetry/costs/summary.ts';
import { picoToUsd } from '../../../pipeline/domain/pricing/money.ts';
import type { Span } from '../../../pipeline/domain/traces/span.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, seeded, type TestStore } from '../../support/store.ts';

const DAY_MS = 86_400_000;
const TODAY = Date.parse('2026-03-10T00:00:00Z');
const NOW = TODAY + 9 * 3_600_000;
const signal = new AbortController().signal;
const random = seeded(11);
const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;

const METADATA: Record<string, Record<string, unknown>> = {
  agent_a: { department: 'support', realm: 'eu' },
  agent_b: { department: 7, realm: { no: 'text' } },
};

let store: TestStore;
let spans: Span[];

/** Returns spans of 60 days at prices that binary numbers cannot represent. */
function someSpans(): Span[] {
  return Array.from({ length: 700 }, (_, n) => {
    const started_at = TODAY + DAY_MS - 1 - Math.floor(random() * 60 * DAY_MS);
    return aSpan({
      org_id: n % 9 === 0 ? 'org_b' : 'org_a',
      started_at,
      received_at: NOW,
      kind: n % 5 === 0 ? 'tool' : 'llm',
      model: n % 5 === 0 ? '' : pick(['gpt-4o', 'o3', 'claude-x']),
      agent_id: pick(['', 'agent_a', 'agent_b', 'agent_c']),
      department: pick(['', '', 'sales', 'support']),
      realm: pick(['', 'us']),
      cost_pico_usd: BigInt(Math.floor(random() * 1e9)) * 1001n + 1n,
      attributes: n % 3 === 0 ? { outcomes: { tickets: 1, value: 0.1 * (n % 7), odd: n % 2 === 0 ? -1 : 1 } } : {},
    });
  });
}

const ofOrg = (org_id: string, days: number): Span[] =>
  spans.filter(
    (span) =>
      span.org_id === org_id && span.started_at >= TODAY - (days - 1) * DAY_MS && span.started_at < TODAY + DAY_MS,
  );
const total = (of: readonly Span[]): bigint => of.reduce((sum, { cost_pico_usd }) => sum + cost_pico_usd, 0n);
const read = (org_id: string, days: number, group_by: Group): Promise<SummaryAnswer> =>
  readSummary(
    { clickhouse: store.client, agentMetadata: (_org, agent) => METADATA[agent] ?? null, now: () => NOW },
    org_id,
    { days, group_by },
    signal,
  );

beforeAll(async () => {
  store = await openTestStore();
  spans = someSpans();
  await store.landSpans(spans);
});
afterAll(() => store.close());

describe('cost summary', () => {
  it.each([1, 7, 30, 60, 365])('the cost summary of %i days adds up exactly', async (days) => {
    const { data, meta } = await read('org_a', days, 'model');
    const of = ofOrg('org_a', days);
    expect(meta).toEqual({ truncated: false });
    expect(data.total_cost_usd).toBe(picoToUsd(total(of)));
    expect(data.period_start).toBe(new Date(TODAY - (days - 1) * DAY_MS).toISOString());
    expect(data.period_end).toBe('2026-03-11T00:00:00.000Z');
    expect(data.by_day).toHaveLength(days);
    for (const { date, cost_usd, tokens } of data.by_day) {
      const own = of.filter(({ started_at }) => new Date(started_at).toISOString().startsWith(date));
      expect({ date, cost_usd, tokens }).toEqual({ date, cost_usd: picoToUsd(total(own)), tokens: own.length * 15 });
    }
    expect(data.by_day.reduce((sum, { cost_usd }) => sum + cost_usd, 0)).toBeCloseTo(data.total_cost_usd, 9);
  });

  it('the cost summary by model is sorted by cost, with null for spans without a model', async () => {
    const { data } = await read('org_a', 30, 'model');
    const expected = [...Map.groupBy(ofOrg('org_a', 30), ({ model }) => model)]
      .map(([model, own]) => ({ model: model === '' ? null : model, pico: total(own) }))
      .sort((a, b) => (a.pico > b.pico ? -1 : 1));
    expect(data.by_model.map(({ model, cost_usd }) => [model, cost_usd])).toEqual(
      expected.map(({ model, pico }) => [model, picoToUsd(pico)]),
    );
    expect(data.by_model.reduce((sum, { share }) => sum + Number(share), 0)).toBeCloseTo(1, 12);
    expect(data).not.toHaveProperty('by_agent_id');
  });

  it.each<[Group, (span: Span) => string]>([
    ['agent_id', (span) => span.agent_id],
    [
      'department',
      (span) => span.department || (span.agent_id === 'agent_a' ? 'support' : span.agent_id === 'agent_b' ? '7' : ''),
    ],
    ['realm', (span) => span.realm || (span.agent_id === 'agent_a' ? 'eu' : '')],
  ])(
    "the cost summary groups by %s as well, by the agent's metadata where the event names none",
    async (group, labelOf) => {
      const { data } = await read('org_a', 60, group);
      const shown = (data as unknown as Record<string, { cost_usd: number; share: number }[]>)[`by_${group}`] ?? [];
      const expected = [...Map.groupBy(ofOrg('org_a', 60), labelOf)]
        .map(([label, own]) => ({ label: label === '' ? null : label, pico: total(own) }))
        .sort((a, b) => (a.pico > b.pico ? -1 : 1));
      expect(shown).toEqual(
        expected.map(({ label, pico }) => ({
          [group]: label,
          cost_usd: picoToUsd(pico),
          share: Number(pico) / Number(total(ofOrg('org_a', 60))),
        })),
      );
      expect(data.by_model).toHaveLength(4);
    },
  );

  it('the cost summary shows nothing of another organization, and all days of an organization without data', async () => {
    expect((await read('org_b', 60, 'model')).data.total_cost_usd).toBe(picoToUsd(total(ofOrg('org_b', 60))));
    const { data } = await read('org_nobody', 3, 'department');
    expect(data).toMatchObject({ total_cost_usd: 0, by_model: [], by_department: [] });
    expect(data.by_day).toEqual(
      ['2026-03-08', '2026-03-09', '2026-03-10'].map((date) => ({ date, cost_usd: 0, tokens: 0 })),
    );
  });

  it('the cost summary counts an event on the day (UTC) on which it began', async () => {
    const edge = Date.parse('2026-02-01T00:00:00Z');
    await store.landSpans([
      aSpan({ org_id: 'org_edge', started_at: edge - 1, ended_at: edge + 5000, cost_pico_usd: 1n }),
      aSpan({ org_id: 'org_edge', started_at: edge, cost_pico_usd: 20n }),
    ]);
    const { data } = await read('org_edge', 60, 'model');
    expect(data.by_day.filter(({ cost_usd }) => cost_usd > 0).map(({ date, cost_usd }) => [date, cost_usd])).toEqual([
      ['2026-01-31', 1e-12],
      ['2026-02-01', 2e-11],
    ]);
  });

  it('the cost summary survives the deletion of the spans', async () => {
    const before = await read('org_a', 60, 'agent_id');
    await store.database.run("DELETE FROM spans WHERE org_id = 'org_a' SETTINGS lightweight_deletes_sync = 2");
    expect(await read('org_a', 60, 'agent_id')).toEqual(before);
  });

  it('the cost summary is the same when read from the projection', async () => {
    const before = await read('org_b', 60, 'department');
    await store.database.run('ALTER TABLE usage_events MATERIALIZE PROJECTION p_day SETTINGS mutations_sync = 2');
    expect(await read('org_b', 60, 'department')).toEqual(before);
    const plan = await store.database.run(
      "EXPLAIN SELECT day, model, if(realm = '', agent_id, '') AS a, sum(cost_usd) FROM usage_events WHERE org_id = 'org_a' AND day >= toDate(20000) GROUP BY day, model, a",
    );
    expect(plan).toContain('ReadFromMergeTree (p_day)');
    expect(plan.match(/ReadFromMergeTree/g)).toHaveLength(1);
  });
});

describe('forecast', () => {
  const forecast = (org_id: string, days: number) =>
    readForecast({ clickhouse: store.client, now: () => NOW }, org_id, days, signal);
  const landDays = (org_id: string, costs: readonly (readonly [number, number])[]) =>
    store.landSpans(
      costs.map(([ago, usd]) =>
        aSpan({ org_id, started_at: TODAY - ago * DAY_MS, cost_pico_usd: BigInt(Math.round(usd * 1e6)) * 1_000_000n }),
      ),
    );

  it('a forecast is computed from the whole days before today, not from today', async () => {
    // Costs on a line of 2 + 0.25 USD a day over 30 days; today's cost is far off that line.
    await landDays('org_line', [...Array.from({ length: 30 }, (_, n) => [30 - n, 2 + n * 0.25] as const), [0, 1000]]);
    const { horizon_days, series, model, mean_fallback } = await forecast('org_line', 30);
    expect({ horizon_days, mean_fallback, type: model.type }).toEqual({
      horizon_days: 30,
      mean_fallback: false,
      type: 'ols',
    });
    expect(model.r_squared).toBeCloseTo(1, 9);
    expect(series).toHaveLength(30);
    expect(series[0]?.date).toBe('2026-03-10');
    expect(series[0]?.predicted_usd).toBeCloseTo(9.5, 9);
    expect(series[29]).toMatchObject({ date: '2026-04-08', predicted_usd: expect.closeTo(16.75, 9) as number });
  });

  it('a forecast counts days without data as 0, from the first day with data', async () => {
    await landDays('org_gaps', [
      [10, 4],
      [4, 1],
    ]);
    const { series, model, mean_fallback } = await forecast('org_gaps', 1);
    expect({ mean_fallback, r_squared: model.r_squared }).toEqual({ mean_fallback: true, r_squared: null });
    expect(series[0]?.predicted_usd).toBeCloseTo(0.5, 12);
    // An organization older than the 90 days that the forecast learns from has data for all of
    // them.
    await landDays('org_old', [
      [200, 4],
      [10, 9],
    ]);
    expect((await forecast('org_old', 1)).mean_fallback).toBe(false);
  });

  it('a forecast of an organization without data is empty', async () => {
    const { series, mean_fallback } = await forecast('org_nobody', 2);
    expect(mean_fallback).toBe(true);
    expect(series).toEqual([
      { date: '2026-03-10', predicted_usd: 0, lower_ci: 0, upper_ci: 0 },
      { date: '2026-03-11', predicted_usd: 0, lower_ci: 0, upper_ci: 0 },
    ]);
  });
});

describe('outcomes by department', () => {
  const rollup = (org_id: string, value_of_outcomes: string | null) =>
    readRollup(
      {
        clickhouse: store.client,
        agentMetadata: (_org, agent) => METADATA[agent] ?? null,
        policyOf: () => ({ value_of_outcomes }),
        now: () => NOW,
      },
      org_id,
      { days: 60 },
      signal,
    );
  const cost_pico_usd = 1_500_000_000_000n;
  const at = TODAY - DAY_MS;

  it('outcomes by department add up, with their costs and their worth', async () => {
    await store.landSpans([
      aSpan({
        org_id: 'org_out',
        started_at: at,
        department: 'sales',
        cost_pico_usd,
        attributes: { outcomes: { leads: 0.1, tickets: 2 } },
      }),
      aSpan({
        org_id: 'org_out',
        started_at: at,
        department: 'sales',
        cost_pico_usd,
        attributes: { outcomes: { leads: 0.2 } },
      }),
      aSpan({ org_id: 'org_out', started_at: at, agent_id: 'agent_a', cost_pico_usd, attributes: {} }),
      aSpan({
        org_id: 'org_out',
        started_at: at,
        department: 'free',
        cost_pico_usd: 0n,
        attributes: { outcomes: { leads: 4, lost: 0 } },
      }),
      aSpan({ org_id: 'org_out', started_at: at, cost_pico_usd, attributes: { outcomes: { leads: 1000 } } }),
    ]);
    expect(await rollup('org_out', 'leads * 10 + tickets / 2 + unknown')).toEqual({
      departments: [
        { department: 'free', cost_usd: 0, outcomes: { leads: 4, lost: 0 }, cost_per_outcome_usd: 0, roi: null },
        {
          department: 'sales',
          cost_usd: 3,
          outcomes: { leads: 0.3, tickets: 2 },
          cost_per_outcome_usd: 3 / 2.3,
          roi: (4 - 3) / 3,
        },
        { department: 'support', cost_usd: 1.5, outcomes: {}, cost_per_outcome_usd: null, roi: -1 },
      ],
    });
    expect((await rollup('org_out', null)).departments.map(({ roi }) => roi)).toEqual([null, null, null]);
    expect((await rollup('org_out', '1 / tickets')).departments.map(({ roi }) => roi)).toEqual([
      null,
      (0.5 - 3) / 3,
      null,
    ]);
  });

  it('outcomes keep names as sent, and exclude values that are not numbers', async () => {
    const outcomes = JSON.parse(
      '{"__proto__": 1, "größe": 2, "a b": 3.25, "text": "4", "null": null, "huge": 1e300}',
    ) as unknown;
    await store.landSpans([aSpan({ org_id: 'org_names', started_at: at, department: 'd', attributes: { outcomes } })]);
    const [item] = (await rollup('org_names', null)).departments;
    expect(JSON.stringify(item?.outcomes)).toBe('{"__proto__":1,"a b":3.25,"größe":2}');
  });

  it('outcomes add up to the same decimal in any order', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: -1000, max: 1000 }), { minLength: 1, maxLength: 20 }),
        async (cents) => {
          const org_id = `org_p${Math.floor(random() * 1e9)}`;
          await store.landSpans(
            cents.map((cent) =>
              aSpan({ org_id, started_at: at, department: 'd', attributes: { outcomes: { n: cent / 100 } } }),
            ),
          );
          const [item] = (await rollup(org_id, null)).departments;
          expect(item?.outcomes).toEqual({ n: cents.reduce((sum, cent) => sum + cent, 0) / 100 });
        },
      ),
      { numRuns: 8 },
    );
  });
});
