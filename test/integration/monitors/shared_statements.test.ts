// Monitors that share a statement find what each finds with a statement of its own, for every measure,
// and a statement that the store cannot answer at once is asked in halves.
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Finding, batchesOf, measure } from '../../../pipeline/monitors/measure.ts';
import { createMonitors, type MonitorBuckets } from '../../../pipeline/monitors/run.ts';
import type { MonitorRecord, MonitorState } from '../../../schemas/records/monitor.ts';
import { SOURCES } from '../../../sql/analytics/catalog.ts';
import { createLogger } from '../../../ops/platform/logger.ts';
import { ClickHouseError } from '@clickhouse/client';
import { ClickHouse, type Read } from '../../../sql/client/client.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, seeded, type TestStore, tracesOf } from '../../support/store.ts';

const NOW = Date.parse('2026-04-02T10:00:00Z');
const MINUTE_MS = 60_000;
const DAY_MINUTES = 1440;
/** Digests of the same rows differ by the order of merging. */
const DIGEST_ERROR = 0.01;
const signal = new AbortController().signal;
let store: TestStore;

const spansOf = (org_id: string, count: number, seed: number) => {
  const random = seeded(seed);
  const one = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
  return Array.from({ length: count }, (_, index) => {
    const started_at = NOW - 1 - Math.floor(random() ** 2 * DAY_MINUTES * MINUTE_MS);
    return aSpan({
      org_id,
      trace_id: `trc_${index % 300}`,
      started_at,
      ended_at: started_at + 1 + Math.floor(random() * 9000),
      received_at: started_at + 10_000,
      kind: one(['llm', 'llm', 'tool']),
      model: one(['gpt-4o', 'o3', 'claude', '']),
      agent_id: one(['planner', 'writer', "o'brien", '']),
      outcome: one(['success', 'success', 'error', 'timeout']),
      user_id: `user_${Math.floor(random() * 250)}`,
      session_id: one(['s1', 's2', '']),
      tags: one([[], ['a'], ['a', 'b']]),
      input_tokens: Math.floor(random() * 5000),
      output_tokens: Math.floor(random() * 900),
      first_token_ms: random() < 0.5 ? 0 : 1 + Math.floor(random() * 800),
      cost_pico_usd: BigInt(Math.floor(random() * 1e10)),
      attributes: random() < 0.5 ? {} : { region: one(['eu', 'us']), nested: { level: Math.floor(random() * 5) } },
    });
  });
};

beforeAll(async () => {
  store = await openTestStore();
  const own = spansOf('org_a', 1500, 1);
  await store.landSpans([...own, ...spansOf('org_b', 200, 2)]);
  await store.landTraces(tracesOf(own).map((state) => ({ state, version: 1, sign: 1 as const })));
  const at = `toDateTime64('2026-04-02 09:30:00', 3, 'UTC')`;
  await store.database.run(
    `INSERT INTO judge_scores (org_id, judge_id, eval_id, trace_id, judge_name, started_at, score, verdict, scored_at)
     SELECT 'org_a', 'judge_1', '', toString(number), 'polite', ${at}, number / 10, 'pass', ${at} FROM numbers(11)`,
  );
  await store.database.run(
    `INSERT INTO user_scores (org_id, name, started_at, trace_id, score_id, data_type, number)
     SELECT 'org_a', 'stars', ${at}, toString(number), toString(number), 'numeric', if(number = 2, NULL, number) FROM numbers(5)`,
  );
});
afterAll(() => store.close());

let serial = 0;
const aMonitor = (over: Partial<MonitorRecord> = {}): MonitorRecord => ({
  org_id: 'org_a',
  monitor_id: `mon_${++serial}`,
  name: 'a monitor',
  query: { view: 'spans', measures: [{ measure: 'count', agg: 'sum' }], filters: [] },
  group_by: [],
  window_minutes: 60,
  threshold: { above: 1 },
  for_minutes: 0,
  channels: [],
  severity: 'info',
  enabled: true,
  muted_until: null,
  created_at: new Date(NOW).toISOString(),
  updated_at: new Date(NOW).toISOString(),
  ...over,
});

type Filter = MonitorRecord['query']['filters'][number];
const FILTERS: Readonly<Record<string, readonly Filter[]>> = {
  spans: [
    { field: 'kind', op: 'eq', value: 'llm' },
    { field: 'agent_id', op: 'ne', value: "o'brien" },
    { field: 'model', op: 'in', value: ['gpt-4o', 'o3'] },
    { field: 'model', op: 'eq', value: 'no such model' },
    { field: 'session_id', op: 'exists', value: false },
    { field: 'outcome', op: 'not_in', value: ['success'] },
    { field: 'duration_ms', op: 'gte', value: 4000 },
    { field: 'cost_usd', op: 'lt', value: 0.004 },
    { field: 'tag', op: 'in', value: ['b', 'c'] },
    { field: 'attributes.region', op: 'eq', value: 'eu' },
    { field: 'attributes.nested.level', op: 'gt', value: 2 },
  ],
  traces: [
    { field: 'outcome', op: 'eq', value: 'error' },
    { field: 'spans', op: 'gt', value: 4 },
    { field: 'agent_id', op: 'eq', value: 'planner' },
  ],
  scores: [
    { field: 'score_name', op: 'eq', value: 'stars' },
    { field: 'given_by', op: 'ne', value: 'user' },
    { field: 'score', op: 'gt', value: 0.5 },
  ],
};
const MEASURES = (['spans', 'traces', 'scores'] as const).flatMap((view) =>
  Object.entries(SOURCES[view].measures).flatMap(([measured, { aggs }]) =>
    Object.keys(aggs)
      .filter((agg) => agg !== 'histogram')
      .map((agg) => ({ view, measure: measured, agg })),
  ),
);
const DIMENSIONS: Readonly<Record<string, readonly string[]>> = {
  spans: ['model', 'agent_id', 'tag', 'outcome'],
  traces: ['agent_id', 'tag', 'outcome'],
  scores: ['score_name', 'verdict'],
};

const generated: fc.Arbitrary<MonitorRecord> = fc
  .record({
    asked: fc.constantFrom(...MEASURES),
    filters: fc.uniqueArray(fc.nat({ max: 20 }), { maxLength: 3 }),
    dimension: fc.option(fc.nat({ max: 20 })),
    window_minutes: fc.constantFrom(60, 1440),
    above: fc.boolean(),
  })
  .map(({ asked: { view, ...asked }, filters, dimension, window_minutes, above }) => {
    const [known, dimensions] = [FILTERS[view] ?? [], DIMENSIONS[view] ?? []];
    const chosen = [...new Set(filters.map((index) => known[index % known.length]))].filter((one) => one !== undefined);
    return aMonitor({
      query: { view, measures: [asked], filters: chosen },
      group_by: dimension === null ? [] : [dimensions[dimension % dimensions.length] ?? ''],
      window_minutes,
      threshold: above ? { above: 1 } : { below: 1 },
    });
  });

const options = { now: NOW, timeoutMs: 20_000, signal };

/** Returns what each monitor finds when it shares statements with the others. */
async function foundTogether(monitors: readonly MonitorRecord[]): Promise<Map<string, Finding>> {
  const found = new Map<string, Finding>();
  for (const batch of batchesOf(monitors)) {
    const findings = await measure(store.client, batch, options);
    for (const [index, { monitors: alike }] of batch.variants.entries())
      for (const { monitor_id } of alike) found.set(monitor_id, findings[index] ?? { refused: 'nothing was found' });
  }
  return found;
}

async function foundAlone(monitor: MonitorRecord): Promise<Finding | undefined> {
  return (await foundTogether([monitor])).get(monitor.monitor_id);
}

/** Returns the values of a finding by group, in an order that does not depend on digests. */
const valuesOf = (finding: Finding | undefined): (readonly [string | null, number | null])[] =>
  finding === undefined || 'refused' in finding
    ? []
    : finding.values
        .map(({ group, value }) => [group, value] as const)
        .toSorted(([a], [b]) => ((a ?? '') < (b ?? '') ? -1 : 1));

function expectSame(together: Finding | undefined, alone: Finding | undefined, { query }: MonitorRecord): void {
  const [a, b] = [valuesOf(together), valuesOf(alone)];
  const tolerance = query.measures[0]?.agg.startsWith('p') === true ? DIGEST_ERROR : 1e-9;
  const isSame = (x: number | null, y: number | null): boolean =>
    x === null || y === null ? x === y : Math.abs(x - y) <= tolerance * Math.max(1, Math.abs(y));
  const same = a.length === b.length && a.every(([g, v], index) => b[index]?.[0] === g && isSame(v, b[index][1]));
  if (!same) expect({ query, values: a }).toEqual({ query, values: b });
  expect({ ...together, values: [] }).toEqual({ ...alone, values: [] });
}

describe('monitors that share statements', () => {
  it('find what each finds with a statement of its own, for generated monitors', async () => {
    let groups = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(generated, { minLength: 10, maxLength: 40 }), async (monitors) => {
        const together = await foundTogether(monitors);
        for (const monitor of monitors) {
          const alone = await foundAlone(monitor);
          groups += valuesOf(alone).length;
          expectSame(together.get(monitor.monitor_id), alone, monitor);
        }
      }),
      { numRuns: 6, seed: 3 },
    );
    expect(groups).toBeGreaterThan(100);
  });

  it('find the same for every measure of every view, with and without rows', async () => {
    const monitors = MEASURES.map(({ view, ...asked }, index) => {
      const filters = FILTERS[view] ?? [];
      return aMonitor({ query: { view, measures: [asked], filters: filters.slice(index % 4, (index % 4) + 1) } });
    });
    const together = await foundTogether(monitors);
    for (const monitor of monitors) expectSame(together.get(monitor.monitor_id), await foundAlone(monitor), monitor);
  });

  it('rank the 100 most extreme groups of each monitor in its own order', async () => {
    const ofUsers = (fields: Partial<MonitorRecord>, filters: Filter[]) =>
      aMonitor({
        query: { view: 'spans', measures: [{ measure: 'input_tokens', agg: 'sum' }], filters },
        group_by: ['user_id'],
        window_minutes: 1440,
        ...fields,
      });
    const monitors = [
      ofUsers({ threshold: { above: 1 } }, []),
      ofUsers({ threshold: { below: 1 } }, []),
      ofUsers({ threshold: { below: 1 } }, [{ field: 'kind', op: 'eq', value: 'tool' }]),
      ofUsers({ threshold: { above: 1 } }, [{ field: 'model', op: 'eq', value: 'no such model' }]),
    ];
    expect(batchesOf(monitors)).toHaveLength(1);
    const together = await foundTogether(monitors);
    const found = monitors.map(({ monitor_id }) => together.get(monitor_id));
    expect(found).toEqual(await Promise.all(monitors.map(foundAlone)));
    expect(
      found.map((one) => [valuesOf(one).length, one !== undefined && 'truncated' in one && one.truncated]),
    ).toEqual([
      [100, true],
      [100, true],
      [100, true],
      [0, false],
    ]);
  });

  it('share a statement of at most 32 measurements, and measurements that are the same', () => {
    const slower = (value: number, over: Partial<MonitorRecord> = {}) =>
      aMonitor({
        query: {
          view: 'spans',
          measures: [{ measure: 'error_rate', agg: 'avg' }],
          filters: [{ field: 'duration_ms', op: 'gte', value }],
        },
        ...over,
      });
    const sizes = (monitors: MonitorRecord[]) => batchesOf(monitors).map(({ variants }) => variants.length);
    expect(sizes(Array.from({ length: 70 }, (_, value) => slower(value)))).toEqual([32, 32, 6]);
    expect(sizes(Array.from({ length: 70 }, (_, value) => slower(1, { threshold: { above: value } })))).toEqual([1]);
    expect(sizes([slower(1), slower(2, { org_id: 'org_b' }), slower(3, { window_minutes: 5 })])).toEqual([1, 1, 1]);
  });

  it('refuse what one of them may not ask, and measure the others', async () => {
    const query = { view: 'spans', measures: [{ measure: 'count', agg: 'median' }], filters: [] };
    const monitors = [
      aMonitor({ query }),
      aMonitor(),
      aMonitor({ query: { ...query, measures: [{ measure: 'errors', agg: 'sum' }] } }),
    ];
    const together = await foundTogether(monitors);
    expect(monitors.map(({ monitor_id }) => together.get(monitor_id))).toEqual([
      { refused: expect.stringContaining('median') as string },
      await foundAlone(monitors[1] as MonitorRecord),
      await foundAlone(monitors[2] as MonitorRecord),
    ]);
  });
});

/** The store, with memory for at most four variants in a statement. */
class TightStore extends ClickHouse {
  failures = 0;

  override rows<T>(read: Read): Promise<T[]> {
    if (!read.sql.includes(' AS in_4')) return super.rows<T>(read);
    this.failures += 1;
    return Promise.reject(new ClickHouseError({ code: '241', type: 'MEMORY_LIMIT_EXCEEDED', message: 'memory' }));
  }
}

/** Buckets that hold their records in memory alone. */
function bucketsOf(monitors: readonly MonitorRecord[]): { buckets: MonitorBuckets; states: Map<string, MonitorState> } {
  const records = new Map(monitors.map((one) => [`${one.org_id}.${one.monitor_id}`, one]));
  const states = new Map<string, MonitorState>();
  const put = (key: string, state: MonitorState): Promise<void> => {
    states.set(key, state);
    return Promise.resolve();
  };
  const entryOf = (value: MonitorState) => ({ value, revision: 1, moved_at: 0 });
  return {
    states,
    buckets: {
      monitors: { get: (key) => records.get(key), values: () => records.values(), close: () => undefined },
      states: {
        held: (key) => {
          const state = states.get(key);
          return state === undefined ? undefined : entryOf(state);
        },
        entries: () => new Map([...states].map(([key, state]) => [key, entryOf(state)])).entries(),
        create: put,
        update: put,
        delete: (key) => Promise.resolve(void states.delete(key)),
        close: () => undefined,
      },
    },
  };
}

it('asks in halves what the store has no memory for at once, and begins with that size the next time', async () => {
  const monitors = Array.from({ length: 12 }, (_, level) =>
    aMonitor({
      query: {
        view: 'spans',
        measures: [{ measure: 'count', agg: 'sum' }],
        filters: [{ field: 'duration_ms', op: 'gte', value: level * 500 }],
      },
    }),
  );
  const { buckets, states } = bucketsOf(monitors);
  const tight = new TightStore({ url: store.database.url });
  const run = createMonitors({
    clickhouse: tight,
    open: () => Promise.resolve(buckets),
    send: () => Promise.resolve(),
  });
  const context = { now: NOW, signal, log: createLogger('monitors', 'silent') };
  expect(await run(context)).toMatchObject({ monitors: 12, failed: 0, late: 0 });
  // A statement of 12, and two of 6.
  expect(tight.failures).toBe(3);
  const together = await foundTogether(monitors);
  for (const { monitor_id } of monitors)
    expect([null, states.get(`org_a.${monitor_id}`)?.groups[0]?.value]).toEqual([
      states.get(`org_a.${monitor_id}`)?.error,
      valuesOf(together.get(monitor_id))[0]?.[1],
    ]);
  expect(await run(context)).toMatchObject({ monitors: 12, failed: 0, late: 0 });
  expect(tight.failures).toBe(3);
  await tight.close();
});
