// Analytics of months is answered from days in UTC where their buckets allow it, with what hours answer.
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { analyticsQuery } from '../../../api/telemetry/analytics/schema.ts';
import { type Agg, SOURCES } from '../../../sql/analytics/catalog.ts';
import { checkedQuery } from '../../../sql/analytics/check.ts';
import { planDayGroups, planDayRows, planRankedDays, wholeDays } from '../../../sql/analytics/days.ts';
import { hasDays } from '../../../sql/analytics/has_days.ts';
import type { AnalyticsQuery, PlannedStatement } from '../../../sql/analytics/plan.ts';
import { readTop } from '../../../sql/analytics/read.ts';
import { createClickHouse } from '../../../sql/client/client.ts';
import type { TestStore } from '../../support/store.ts';
import { eventually } from '../../support/wait.ts';
import { compare, FILTERS, generatedMonths, near, NOW, openSpans, START } from './analytics_oracle.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
let store: TestStore;

beforeAll(async () => {
  store = await openSpans();
});
afterAll(() => store.close());

const queryOf = (asked: Record<string, unknown> & { since: number; until: number }): AnalyticsQuery => {
  const [since, until] = [asked.since, asked.until].map((at) => new Date(at).toISOString());
  return checkedQuery('org_a', analyticsQuery.parse({ view: 'spans', ...asked, since, until }), NOW).query;
};
const days = (from: number, until: number) => ({ since: START + from * DAY, until: START + until * DAY });
const count = [{ measure: 'count', agg: 'sum' as Agg }];

describe('whole days', () => {
  const asked = { measures: count };

  it.each([
    ['UTC', 'day', true],
    ['Etc/UTC', 'week', true],
    ['Africa/Abidjan', 'month', true],
    ['Europe/Berlin', 'day', false],
    ['Asia/Kolkata', 'week', false],
    ['Pacific/Auckland', 'month', false],
    ['UTC', 'hour', false],
  ] as const)('in %s answer the granularity %s: %s', (timezone, granularity, answers) => {
    const found = wholeDays(queryOf({ ...asked, ...days(1.5, 20.25), timezone, granularity }));
    expect(found).toEqual(answers ? { from: START + 2 * DAY, until: START + 20 * DAY } : null);
  });

  it('answer a zone where it keeps the time of UTC, and not where daylight-saving time begins', () => {
    const winter = { since: Date.parse('2026-02-01'), until: Date.parse('2026-03-20') };
    const spring = { since: Date.parse('2026-03-20'), until: Date.parse('2026-04-10') };
    const london = { ...asked, timezone: 'Europe/London', granularity: 'day' };
    expect(wholeDays(queryOf({ ...london, ...winter }))).not.toBe(null);
    expect(wholeDays(queryOf({ ...london, ...spring }))).toBe(null);
  });

  it('do not answer where a month of the zone ends after that of UTC', () => {
    const autumn = { since: Date.parse('2026-10-01'), until: Date.parse('2026-11-01T01:00:00Z') };
    const azores = { ...asked, timezone: 'Atlantic/Azores', granularity: 'month' };
    expect(wholeDays(queryOf({ ...azores, ...autumn }))).toBe(null);
  });

  it('do not answer for models and agents together', () => {
    const filters = [{ field: 'model', value: 'o3' }];
    expect(wholeDays(queryOf({ ...asked, ...days(0, 9), group_by: ['agent_id'] }))).not.toBe(null);
    expect(wholeDays(queryOf({ ...asked, ...days(0, 9), group_by: ['agent_id'], filters }))).toBe(null);
    expect(wholeDays(queryOf({ ...asked, ...days(0, 9), group_by: ['model', 'agent_id'] }))).toBe(null);
  });

  it('answer every zone without granularity, from seven days on', () => {
    const berlin = { ...asked, timezone: 'Europe/Berlin' };
    expect(wholeDays(queryOf({ ...berlin, ...days(0, 7) }))).not.toBe(null);
    expect(wholeDays(queryOf({ ...berlin, ...days(0.5, 7.75) }))).toBe(null);
  });
});

describe('answers from days', () => {
  it('are those of SQL on analyst_spans, for generated queries', async () => {
    await fc.assert(
      fc.asyncProperty(generatedMonths, async (query) => {
        // Zones whose days begin on a half hour read rows.
        expect(['rollup', 'truncated', 'rows']).toContain(await compare(store, query));
      }),
      { numRuns: 80, seed: 11 },
    );
  });

  it('are those of hours, group by group, for generated queries with few groups shown', async () => {
    const read = { signal: new AbortController().signal, rollup: true };
    const top = fc.integer({ min: 1, max: 4 });
    await fc.assert(
      fc.asyncProperty(generatedMonths, top, async (generated, limit) => {
        const asked = {
          // Digests of days and of hours may rank groups differently; counts cannot.
          measures: [...count, ...generated.measures.map(measureOf)],
          group_by: generated.group_by,
          filters: generated.filters.map((index) => FILTERS[index]?.[0]),
          ...days(generated.since / 96, (generated.since + generated.until) / 96),
        };
        const query = { ...queryOf({ ...asked, measures: count }), measures: asked.measures };
        const [hours, found] = await Promise.all(
          [false, true].map((fromDays) =>
            readTop(store.client, { ...read, query, days: fromDays, deadline: performance.now() + 10_000 }, limit),
          ),
        );
        expect([found?.top, found?.truncated]).toEqual([hours?.top, hours?.truncated]);
        const rows = [found, hours].map((one) => [
          { group: ['all'], values: one?.result.totals ?? [] },
          ...(one?.result.rows ?? []),
        ]);
        const [ofDays = [], ofHours = []] = rows.map((some) =>
          some.toSorted((a, b) => keyOf(a).localeCompare(keyOf(b))),
        );
        expect(ofDays.map(({ group }) => group)).toEqual(ofHours.map(({ group }) => group));
        for (const [at, { values }] of ofDays.entries())
          for (const [index, value] of values.entries())
            near(value, ofHours[at]?.values[index], asked.measures[index]?.agg ?? 'sum');
      }),
      { numRuns: 60, seed: 13 },
    );
  });

  it('come from a projection of days for every measure, dimension and statement', async () => {
    const { measures, dimensions } = SOURCES.spans;
    const asked = Object.entries(measures).flatMap(([measure, { aggs }]) =>
      Object.entries(aggs).flatMap(([agg, { rollup }]) => (rollup ? [{ measure, agg: agg as Agg }] : [])),
    );
    expect(asked.length).toBeGreaterThan(20);
    for (const [group_by, granularity] of [
      ...Object.entries(dimensions).flatMap(([name, { rollup }]) => (rollup ? [[[name], undefined] as const] : [])),
      [[], 'week'] as const,
      [[], undefined] as const,
    ]) {
      const query = { ...queryOf({ measures: count, group_by, granularity, ...days(0.5, 20.5) }), measures: asked };
      const whole = wholeDays(query);
      if (whole === null) throw new Error('days must answer the query');
      const statements = [
        planDayRows(query, whole, [['planner']]),
        ...(group_by.length > 0 ? [planDayGroups(query, whole, 3), planRankedDays(query, whole, 3)] : []),
      ];
      for (const statement of statements)
        expect(await planOf(statement)).toMatch(/ReadFromMergeTree \(p_day_(model|agent)\)/);
    }
  });
});

const keyOf = ({ group }: { group: readonly string[] }): string => JSON.stringify(group);
const measureOf = (name: string) => {
  const [measure = '', agg = 'sum'] = name.split(' ');
  return { measure, agg: agg as Agg };
};

async function planOf({ sql, params }: PlannedStatement): Promise<string> {
  const lines = await store.client.rows<{ explain: string }>({
    name: 'explain',
    sql: `EXPLAIN ${sql}`,
    params,
    timeoutMs: 10_000,
  });
  return lines.map(({ explain }) => explain).join('\n');
}

describe('hasDays', () => {
  const options = { signal: new AbortController().signal };
  const asking = async (): Promise<boolean> => {
    const client = createClickHouse({ url: store.database.url });
    try {
      return await hasDays(client, options);
    } finally {
      await client.close();
    }
  };

  it('returns false while the projection of older spans is being made, and true from then on', async () => {
    expect(await asking()).toBe(true);
    await store.database.run('SYSTEM STOP MERGES spans');
    await store.database.run('ALTER TABLE spans MATERIALIZE PROJECTION p_day_agent SETTINGS mutations_sync = 0');
    expect(await asking()).toBe(false);
    await store.database.run('SYSTEM START MERGES spans');
    await eventually(asking, { what: 'the projection of all spans' });
  });
});
