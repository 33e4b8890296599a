// Costs by day and group, and models without a price, compared with sums that the test computes.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seriesQuery, type Group, SERIES_GROUPS_MAX } from '../../../api/telemetry/costs/schema.ts';
import { readSeries } from '../../../api/telemetry/costs/series.ts';
import { listUnpriced } from '../../../api/telemetry/costs/unpriced.ts';
import { picoToUsd } from '../../../pipeline/domain/pricing/money.ts';
import type { Span } from '../../../pipeline/domain/traces/span.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, seeded, type TestStore } from '../../support/store.ts';

const DAY_MS = 86_400_000;
const TODAY = Date.parse('2026-03-10T00:00:00Z');
const NOW = TODAY + 9 * 3_600_000;
const signal = new AbortController().signal;
const random = seeded(5);
const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;

const METADATA: Record<string, Partial<Record<'department' | 'realm', string>>> = {
  agent_a: { department: 'support', realm: 'eu' },
  agent_b: { department: 'sales' },
};

let store: TestStore;
let spans: Span[];

/** Returns spans of 60 days with 20 models, at prices that binary numbers cannot represent. */
function someSpans(): Span[] {
  return Array.from({ length: 900 }, (_, n) => {
    const model = n % 7 === 0 ? '' : `model-${Math.floor(random() * random() * 20)}`;
    return aSpan({
      org_id: n % 9 === 0 ? 'org_b' : 'org_a',
      started_at: TODAY + DAY_MS - 1 - Math.floor(random() * 60 * DAY_MS),
      received_at: NOW,
      model,
      agent_id: pick(['', 'agent_a', 'agent_b', 'agent_c']),
      department: pick(['', '', 'sales', 'support', 'line\nbreak']),
      realm: pick(['', 'us']),
      cost_pico_usd: BigInt(Math.floor(random() * 1e9)) * 1001n + 1n,
      ...(n % 5 === 0 ? { price: { ...NO_PRICE, source: 'missing' } } : {}),
    });
  });
}
const NO_PRICE = { input_usd_per_mtok: null, output_usd_per_mtok: null, cached_input_usd_per_mtok: null };

beforeAll(async () => {
  store = await openTestStore();
  spans = someSpans();
  await store.landSpans(spans);
});
afterAll(() => store.close());

const deps = () => ({
  clickhouse: store.client,
  agentMetadata: (_org: string, agent: string) => METADATA[agent] ?? null,
  now: () => NOW,
});
const read = (query: Record<string, string>, org_id = 'org_a') =>
  readSeries(deps(), org_id, seriesQuery.parse(query), signal);

const VALUE_OF: Record<Group, (span: Span) => string> = {
  model: ({ model }) => model,
  agent_id: ({ agent_id }) => agent_id,
  realm: ({ realm, agent_id }) => realm || (METADATA[agent_id]?.realm ?? ''),
  department: ({ department, agent_id }) => department || (METADATA[agent_id]?.department ?? ''),
};

/** Returns the spans that start in the given days before tomorrow: 1 is today. */
const within = (org_id: string, first: number, last: number): Span[] =>
  spans.filter(
    (span) =>
      span.org_id === org_id &&
      span.started_at >= TODAY - (first - 1) * DAY_MS &&
      span.started_at < TODAY - (last - 1) * DAY_MS,
  );
const pico = (of: readonly Span[]): bigint => of.reduce((sum, { cost_pico_usd }) => sum + cost_pico_usd, 0n);

/** Returns the series of the spans that a predicate keeps, as the answer has it. */
function expected(days: number, keep: (span: Span) => boolean, org_id = 'org_a') {
  const now = within(org_id, days, 0).filter(keep);
  const before = within(org_id, 2 * days, days).filter(keep);
  const byDay = Array.from({ length: days }, (_, index) =>
    now.filter(({ started_at }) => Math.floor((started_at - TODAY) / DAY_MS) === index - days + 1),
  );
  return {
    cost_usd: picoToUsd(pico(now)),
    tokens: now.length * 15,
    previous_cost_usd: picoToUsd(pico(before)),
    previous_tokens: before.length * 15,
    by_day: {
      cost_usd: byDay.map((own) => picoToUsd(pico(own))),
      tokens: byDay.map((own) => own.length * 15),
    },
  };
}

describe('cost series', () => {
  it.each<[days: number, group_by: Group[]]>([
    [1, ['model']],
    [30, ['model']],
    [30, ['agent_id']],
    [29, ['department']],
    [14, ['realm', 'department']],
    [30, ['model', 'realm']],
    [30, ['agent_id', 'department']],
    [90, ['department', 'agent_id']],
  ])('the series of %i days by %j has the 12 costliest groups, and adds up with the others', async (days, group_by) => {
    const labelsOf = (span: Span): string => JSON.stringify(group_by.map((name) => VALUE_OF[name](span)));
    const ranked = [...Map.groupBy(within('org_a', days, 0), labelsOf)]
      .sort(([, a], [, b]) => (pico(a) > pico(b) ? -1 : 1))
      .map(([labels]) => labels);
    const shown = ranked.slice(0, SERIES_GROUPS_MAX);
    const answer = await read({ days: String(days), group_by: group_by.join(',') });
    expect(answer.group_by).toEqual(group_by);
    expect(answer.dates).toHaveLength(days);
    expect([answer.dates[0], answer.dates.at(-1)]).toEqual([
      new Date(TODAY - (days - 1) * DAY_MS).toISOString().slice(0, 10),
      '2026-03-10',
    ]);
    expect(answer.groups).toEqual(
      shown.map((labels) => {
        const values = JSON.parse(labels) as string[];
        return {
          group: Object.fromEntries(group_by.map((name, index) => [name, values[index] || null])),
          ...expected(days, (span) => labelsOf(span) === labels),
        };
      }),
    );
    expect(answer.other).toEqual(expected(days, (span) => !shown.includes(labelsOf(span))));
    expect(answer.total).toEqual(expected(days, () => true));
  });

  it('the series of an organization without costs has zeros for every day', async () => {
    const answer = await read({ days: '2' }, 'org_none');
    const zeros = {
      cost_usd: 0,
      tokens: 0,
      previous_cost_usd: 0,
      previous_tokens: 0,
      by_day: { cost_usd: [0, 0], tokens: [0, 0] },
    };
    expect(answer).toMatchObject({ groups: [], other: zeros, total: zeros });
  });

  it('the series shows an organization its own costs', async () => {
    expect((await read({ days: '60' }, 'org_b')).total).toEqual(expected(60, () => true, 'org_b'));
  });

  it.each([
    [{ group_by: 'model,agent_id,realm' }, 'must name 1 or 2 of'],
    [{ group_by: 'model,model' }, 'must not name a dimension twice'],
    [{ group_by: '' }, 'must name 1 or 2 of'],
    [{ group_by: 'colour' }, 'Invalid option'],
    [{ days: '366' }, 'must be an integer between 1 and 365'],
  ])('the series rejects %j', (query, message) => {
    expect(() => seriesQuery.parse(query)).toThrow(message);
  });
});

describe('models without a price', () => {
  it('the list has calls and tokens of each model, most tokens first', async () => {
    const own = within('org_a', 30, 0).filter(({ price }) => price.source === 'missing');
    const wanted = [...Map.groupBy(own, ({ model }) => model)].map(([model, calls]) => ({
      model,
      calls: calls.length,
      input_tokens: 10 * calls.length,
      output_tokens: 5 * calls.length,
      last_call_at: new Date(Math.max(...calls.map(({ started_at }) => started_at))).toISOString(),
    }));
    wanted.sort((a, b) => b.calls - a.calls || (a.model < b.model ? -1 : 1));
    expect(await listUnpriced(deps(), 'org_a', 30, signal)).toEqual(wanted);
    expect(await listUnpriced(deps(), 'org_none', 30, signal)).toEqual([]);
  });
});
