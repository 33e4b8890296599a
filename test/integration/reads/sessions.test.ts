// Sessions and end users, compared with sums that the test computes. The traces land span by span,
// as pairs of rows that no merge has collapsed.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listGroups } from '../../../api/telemetry/sessions/sessions.ts';
import { groupsQuery } from '../../../api/telemetry/sessions/schema.ts';
import type { Span, TraceOutcome } from '../../../pipeline/domain/traces/span.ts';
import type { TraceState } from '../../../pipeline/domain/traces/trace_state.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, seeded, type TestStore, tracesOf, usd } from '../../support/store.ts';

const NOW = Date.parse('2026-03-01T00:00:00Z');
const signal = new AbortController().signal;
const random = seeded(11);
const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;

let store: TestStore;
let live: TraceState[];

function someSpans(): Span[] {
  return Array.from({ length: 150 }, (_, n) => {
    const started = NOW - Math.floor(random() * 40 * 86_400_000);
    const about = {
      org_id: n % 6 === 0 ? 'org_b' : 'org_a',
      trace_id: `trace-${n}`,
      agent_id: pick(['', 'agent_1', 'agent_2']),
      session_id: pick(['', 's1', 's2', 's3', `only-${n}`]),
      user_id: pick(['', 'u1', 'u2', 'ü 3']),
    };
    return Array.from({ length: 1 + (n % 4) }, (_, i) =>
      aSpan({
        ...about,
        started_at: i === 2 ? started - 5000 : started + i * 10,
        ended_at: started + Math.floor(random() * 10_000),
        parent_span_id: i === 0 ? '' : 'spn_parent',
        outcome: pick<TraceOutcome>(['success', 'success', 'success', 'timeout', 'error']),
        input_tokens: Math.floor(random() * 1000),
        output_tokens: Math.floor(random() * 1000),
        cost_pico_usd: BigInt(Math.floor(random() * 1e12)),
      }),
    );
  }).flat();
}

beforeAll(async () => {
  store = await openTestStore();
  const spans = someSpans();
  const landings: { state: TraceState; version: number; sign: 1 | -1 }[][] = [[], [], [], []];
  for (const own of Map.groupBy(spans, (span) => span.trace_id).values()) {
    for (const [index] of own.entries()) {
      const state = (upTo: number) => tracesOf(own.slice(0, upTo))[0] as TraceState;
      if (index > 0) landings[index]?.push({ state: state(index), version: index, sign: -1 });
      landings[index]?.push({ state: state(index + 1), version: index + 1, sign: 1 });
    }
  }
  for (const landing of landings) await store.landTraces(landing);
  live = tracesOf(spans);
});

afterAll(() => store.close());

const list = (by: 'session' | 'user', query: Record<string, unknown> = {}, org_id = 'org_a') =>
  listGroups({ clickhouse: store.client }, { org_id, by, query: groupsQuery.parse(query), signal }, (id, sums) => ({
    id,
    ...sums,
  }));

function expected(by: 'session' | 'user', keep: (trace: TraceState) => boolean = () => true, org_id = 'org_a') {
  const idOf = (trace: TraceState): string => (by === 'session' ? trace.session_id : trace.user_id);
  const mine = live.filter((trace) => trace.org_id === org_id && idOf(trace) !== '' && keep(trace));
  return [...Map.groupBy(mine, idOf)]
    .map(([id, traces]) => {
      const sum = (of: (trace: TraceState) => number): number => traces.reduce((total, trace) => total + of(trace), 0);
      return {
        id,
        traces: traces.length,
        failed_traces: sum(({ outcome }) => (outcome === 'success' ? 0 : 1)),
        failed_share: sum(({ outcome }) => (outcome === 'success' ? 0 : 1)) / traces.length,
        spans: sum(({ spans }) => spans),
        cost_usd: usd(traces.reduce((total, { cost_pico_usd }) => total + cost_pico_usd, 0n)),
        input_tokens: sum(({ input_tokens }) => input_tokens),
        output_tokens: sum(({ output_tokens }) => output_tokens),
        first_seen: new Date(Math.min(...traces.map(({ started_at }) => started_at))).toISOString(),
        last_seen: new Date(Math.max(...traces.map(({ ended_at }) => ended_at))).toISOString(),
      };
    })
    .sort((a, b) => (a.last_seen === b.last_seen ? (a.id < b.id ? 1 : -1) : a.last_seen < b.last_seen ? 1 : -1));
}

describe.each(['session', 'user'] as const)('the list by %s', (by) => {
  it('the list sums up the traces of each, the last seen first', async () => {
    const wanted = expected(by);
    const { data, meta } = await list(by, { limit: '200' });
    expect(data).toEqual(wanted);
    expect(meta).toEqual({ total: wanted.length, page: 1, per_page: 200, has_more: false, next_cursor: null });
  });

  it('the list shows an organization its own', async () => {
    expect((await list(by, { limit: '200' }, 'org_b')).data).toEqual(expected(by, () => true, 'org_b'));
    expect((await list(by, {}, 'org_c')).data).toEqual([]);
  });

  it('the list is the same by offset and by cursor', async () => {
    const wanted = expected(by).map(({ id }) => id);
    const byOffset: string[] = [];
    for (let offset = 0; offset < wanted.length; offset += 2)
      byOffset.push(...(await list(by, { limit: '2', offset: String(offset) })).data.map(({ id }) => id));
    expect(byOffset).toEqual(wanted);
    const byCursor: string[] = [];
    for (let cursor: string | null | undefined = undefined; cursor !== null;) {
      const page: Awaited<ReturnType<typeof list>> = await list(by, {
        limit: '2',
        ...(cursor === undefined ? {} : { cursor }),
      });
      byCursor.push(...page.data.map(({ id }) => id));
      cursor = page.meta.next_cursor;
    }
    expect(byCursor).toEqual(wanted);
  });

  it('the list counts only the traces that match a filter', async () => {
    const since = NOW - 20 * 86_400_000;
    const until = NOW - 5 * 86_400_000;
    const times = { since: new Date(since).toISOString(), until: new Date(until).toISOString() };
    expect((await list(by, { limit: '200', ...times })).data).toEqual(
      expected(by, ({ started_at }) => started_at >= since && started_at <= until),
    );
    expect((await list(by, { limit: '200', agent_id: 'agent_1' })).data).toEqual(
      expected(by, ({ agent_id }) => agent_id === 'agent_1'),
    );
    expect((await list(by, { limit: '200', session_id: 's1' })).data).toEqual(
      expected(by, ({ session_id }) => session_id === 's1'),
    );
    expect((await list(by, { limit: '200', user_id: 'ü 3' })).data).toEqual(
      expected(by, ({ user_id }) => user_id === 'ü 3'),
    );
  });

  it('the list rejects a cursor that it did not issue', async () => {
    await expect(list(by, { cursor: 'bm8' })).rejects.toMatchObject({ code: 'invalid_request' });
  });
});

describe.each(['session', 'user'] as const)('a filter of the list by %s', (by) => {
  // A trace that first landed with agent_early, then turned out to belong to agent_root and to
  // begin earlier than its first span says. Beside it, a trace of agent_early that never changed.
  // No merge may collapse the pairs of rows.
  const T = NOW - 3_600_000;
  const people = { org_id: `org_pairs_${by}`, session_id: 's', user_id: 'u' };
  const first = aSpan({
    ...people,
    trace_id: 'changed',
    agent_id: 'agent_early',
    parent_span_id: 'p',
    started_at: T,
    ended_at: T + 60_000,
  });
  const root = aSpan({
    ...people,
    trace_id: 'changed',
    agent_id: 'agent_root',
    started_at: T - 30_000,
    ended_at: T + 5000,
    outcome: 'error',
  });
  const steady = aSpan({
    ...people,
    trace_id: 'steady',
    agent_id: 'agent_early',
    started_at: T + 10_000,
    ended_at: T + 20_000,
  });
  const state = (...spans: Span[]): TraceState => tracesOf(spans)[0] as TraceState;
  const read = async (query: Record<string, string>) => (await list(by, query, `org_pairs_${by}`)).data;
  const sums = (spans: readonly Span[], failed_traces: number) => ({
    traces: new Set(spans.map(({ trace_id }) => trace_id)).size,
    failed_traces,
    failed_share: failed_traces / new Set(spans.map(({ trace_id }) => trace_id)).size,
    spans: spans.length,
    cost_usd: usd(spans.reduce((total, { cost_pico_usd }) => total + cost_pico_usd, 0n)),
    input_tokens: 10 * spans.length,
    output_tokens: 5 * spans.length,
    first_seen: new Date(Math.min(...spans.map(({ started_at }) => started_at))).toISOString(),
    last_seen: new Date(Math.max(...spans.map(({ ended_at }) => ended_at))).toISOString(),
  });
  const id = by === 'session' ? 's' : 'u';
  const onlySteady = [{ id, ...sums([steady], 0) }];

  beforeAll(async () => {
    await store.database.run('SYSTEM STOP MERGES traces');
    await store.landTraces([{ state: state(first), version: 1, sign: 1 }]);
    await store.landTraces([{ state: state(steady), version: 2, sign: 1 }]);
    await store.landTraces([
      { state: state(first), version: 1, sign: -1 },
      { state: state(first, root), version: 3, sign: 1 },
    ]);
  });
  afterAll(() => store.database.run('SYSTEM START MERGES traces'));

  it('the filter by agent counts no superseded state of a trace, only the traces that belong to the agent now', async () => {
    expect(await read({ agent_id: 'agent_early' })).toEqual(onlySteady);
    expect(await read({ agent_id: 'agent_root' })).toEqual([{ id, ...sums([first, root], 1) }]);
  });

  it('the filter by time counts no superseded state of a trace, only the traces that start within it now', async () => {
    expect(await read({ since: new Date(T - 10_000).toISOString() })).toEqual(onlySteady);
    expect(await read({ until: new Date(T - 10_000).toISOString() })).toEqual([{ id, ...sums([first, root], 1) }]);
    expect(await read({ session_id: 's', user_id: 'u' })).toEqual([{ id, ...sums([first, root, steady], 1) }]);
  });

  it('the analysts’ view returns no superseded state of a trace, whatever the query', async () => {
    const found = async (where: string): Promise<string> =>
      (
        await store.database.run(
          `SELECT arraySort(groupArray((trace_id, agent_id, spans))) FROM analyst_traces WHERE org_id = 'org_pairs_${by}' AND ${where}`,
        )
      ).trim();
    const changed = "('changed','agent_root',2)";
    const kept = "('steady','agent_early',1)";
    expect(await found("agent_id = 'agent_early'")).toBe(`[${kept}]`);
    expect(await found("agent_id = 'agent_root'")).toBe(`[${changed}]`);
    expect(await found("outcome = 'success'")).toBe(`[${kept}]`);
    expect(await found(`started_at >= fromUnixTimestamp64Milli(${T - 10_000})`)).toBe(`[${kept}]`);
    expect(await found(`started_at < fromUnixTimestamp64Milli(${T})`)).toBe(`[${changed}]`);
    expect(await found("session_id = 's' AND user_id = 'u' AND duration_ms >= 60000")).toBe(`[${changed}]`);
  });
});
