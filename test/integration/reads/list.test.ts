import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listTraces, type TraceList } from '../../../api/telemetry/traces/list.ts';
import { listQuery } from '../../../api/telemetry/traces/schema.ts';
import type { Span, TraceOutcome } from '../../../pipeline/domain/traces/span.ts';
import type { TraceState } from '../../../pipeline/domain/traces/trace_state.ts';
import { durationMs } from '../../../pipeline/domain/traces/trace_state.ts';
import { createClickHouse } from '../../../sql/client/client.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, seeded, type TestStore, tracesOf, usd } from '../../support/store.ts';
import { wordsDeps } from '../../support/words.ts';

const NOW = Date.parse('2026-03-01T00:00:00Z');
const DAY_MS = 86_400_000;
/** Traces per page. No case's total is a multiple of it, so the last page is always short. */
const PAGE = 31;
const signal = new AbortController().signal;
const random = seeded(7);
const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;

let store: TestStore;
/** Live traces of org_a, in the order of the list. */
let live: { state: TraceState; key: bigint; texts: string[] }[];

const list = (query: Record<string, unknown>, orgId = 'org_a'): Promise<TraceList> =>
  listTraces({ ...wordsDeps(store.client), now: () => NOW }, orgId, listQuery.parse(query), signal);
const ids = ({ data }: TraceList): string[] => data.map((item) => item.trace_id);

const SAYINGS = [
  'the red car stopped',
  'a red and fast car',
  'car red, said she',
  'GRÖSSE zählt—sehr',
  'nothing of note',
  'don’t stop the red   car',
];

/**
 * Returns spans of 240 traces over 100 days: most traces land several times, and some start in the
 * same millisecond.
 */
function someSpans(): Span[] {
  return Array.from({ length: 240 }, (_, n) => {
    const started = NOW - Math.floor(random() ** 2 * 100) * DAY_MS - (n % 40) * 60_000;
    const about = {
      org_id: n % 8 === 0 ? 'org_b' : 'org_a',
      trace_id: `trace-${n}`,
      agent_id: pick(['', 'agent_1', 'agent_2']),
      session_id: pick(['', 's1', 's2']),
      user_id: pick(['', 'u1']),
    };
    return Array.from({ length: 1 + (n % 4) }, (_, i) => {
      const at = i === 2 ? started - 5000 : started + i * 10;
      const outcome = pick<TraceOutcome>(['success', 'success', 'success', 'timeout', 'error']);
      const tags = pick([[], ['x'], ['x', 'y'], ['z']]);
      const parent = i === 0 && n % 5 !== 0 ? '' : 'spn_parent';
      const texts = random() < 0.3 ? { prompt: pick(SAYINGS), response: pick(SAYINGS) } : { prompt: '', response: '' };
      return aSpan({
        ...about,
        ...texts,
        started_at: at,
        ended_at: at + Math.floor(random() * 10_000),
        parent_span_id: parent,
        outcome,
        tags,
        cost_pico_usd: BigInt(Math.floor(random() * 1e12)),
      });
    });
  }).flat();
}

beforeAll(async () => {
  store = await openTestStore();
  const spans = someSpans();
  await store.landSpans(spans);
  await store.moveTexts();
  const byTrace = Map.groupBy(spans, (span) => span.trace_id);
  // Every trace lands span by span, each time as a pair of rows.
  const rows: { state: TraceState; version: number; sign: 1 | -1 }[][] = [[], [], [], []];
  for (const own of byTrace.values()) {
    for (const [index] of own.entries()) {
      const state = (upTo: number) => tracesOf(own.slice(0, upTo))[0] as TraceState;
      if (index > 0) rows[index]?.push({ state: state(index), version: index, sign: -1 });
      rows[index]?.push({ state: state(index + 1), version: index + 1, sign: 1 });
    }
  }
  for (const landing of rows) await store.landTraces(landing);
  const keys = new Map(
    (
      await store.client.rows<{ trace_id: string; key: string }>({
        name: 'keys',
        sql: 'SELECT DISTINCT trace_id, toString(trace_key) AS key FROM traces',
        timeoutMs: 5000,
      })
    ).map((row) => [row.trace_id, BigInt(row.key)]),
  );
  live = tracesOf(spans)
    .filter((state) => state.org_id === 'org_a')
    .map((state) => ({
      state,
      key: keys.get(state.trace_id) ?? 0n,
      texts: (byTrace.get(state.trace_id) ?? []).map((span) => `${span.prompt}\n${span.response}`.toLowerCase()),
    }))
    .sort((a, b) => b.state.started_at - a.state.started_at || (b.key > a.key ? 1 : -1));
});

afterAll(() => store.close());

const iso = (ms: number): string => new Date(ms).toISOString();
const wordsOf = (text: string): string[] => text.match(/[\p{L}\p{N}]+/gu) ?? [];
const holds = (texts: readonly string[], check: (words: string[]) => boolean): boolean =>
  texts.some((text) => check(wordsOf(text)));

describe('the trace list', () => {
  it('the trace list is tested with row pairs that no merge has combined', async () => {
    const [row] = await store.client.rows<{ rows: string; traces: string }>({
      name: 'pairs',
      sql: 'SELECT count() AS rows, sum(sign) AS traces FROM traces',
      timeoutMs: 5000,
    });
    expect(Number(row?.rows)).toBeGreaterThan(Number(row?.traces));
    expect(Number(row?.traces)).toBe(240);
  });

  it('the trace list shows each trace as the sum of its spans', async () => {
    const { data } = await list({ limit: '200' });
    expect(data).toHaveLength(200);
    for (const [index, item] of data.entries()) {
      const state = live[index]?.state as TraceState;
      expect(item).toEqual({
        trace_id: state.trace_id,
        root_span_name: state.root_span_name === '' ? null : state.root_span_name,
        agent_id: state.agent_id === '' ? null : state.agent_id,
        outcome: state.outcome,
        duration_ms: durationMs(state),
        input_tokens: state.input_tokens,
        output_tokens: state.output_tokens,
        cost_usd: usd(state.cost_pico_usd),
        started_at: iso(state.started_at),
        ended_at: iso(state.ended_at),
        tags: state.tags,
        span_count: state.spans,
        session_id: state.session_id === '' ? null : state.session_id,
        user_id: state.user_id === '' ? null : state.user_id,
      });
    }
  });

  const cases: [string, Record<string, unknown>, (trace: { state: TraceState; texts: string[] }) => boolean][] = [
    ['nothing', {}, () => true],
    ['agent', { agent_id: 'agent_1' }, ({ state }) => state.agent_id === 'agent_1'],
    ['outcome', { outcome: 'error' }, ({ state }) => state.outcome === 'error'],
    ['shortest', { min_duration_ms: '4000' }, ({ state }) => durationMs(state) >= 4000],
    ['longest', { max_duration_ms: '4000' }, ({ state }) => durationMs(state) <= 4000],
    [
      'both',
      { min_duration_ms: '2000', max_duration_ms: '6000' },
      ({ state }) => durationMs(state) >= 2000 && durationMs(state) <= 6000,
    ],
    ['since', { since: iso(NOW - 20 * DAY_MS) }, ({ state }) => state.started_at >= NOW - 20 * DAY_MS],
    ['until', { until: iso(NOW - 20 * DAY_MS) }, ({ state }) => state.started_at <= NOW - 20 * DAY_MS],
    [
      'a day',
      { since: iso(NOW - 31 * DAY_MS), until: iso(NOW - 3 * DAY_MS) },
      ({ state }) => state.started_at >= NOW - 31 * DAY_MS && state.started_at <= NOW - 3 * DAY_MS,
    ],
    ['a date', { since: '2026-02-01' }, ({ state }) => state.started_at >= Date.parse('2026-02-01T00:00:00Z')],
    ['a tag', { tags: 'y' }, ({ state }) => state.tags.includes('y')],
    ['any of two tags', { tags: ['y', 'z'] }, ({ state }) => state.tags.includes('y') || state.tags.includes('z')],
    ['tags with commas', { tags: 'y,z' }, ({ state }) => state.tags.includes('y') || state.tags.includes('z')],
    ['session', { session_id: 's1' }, ({ state }) => state.session_id === 's1'],
    ['user', { user_id: 'u1' }, ({ state }) => state.user_id === 'u1'],
    ['a word', { search: 'CAR' }, ({ texts }) => holds(texts, (words) => words.includes('car'))],
    [
      'two words, in one span',
      { search: 'fast stopped' },
      ({ texts }) => holds(texts, (words) => words.includes('fast') && words.includes('stopped')),
    ],
    [
      'a word with letters beyond ASCII',
      { search: 'grösse' },
      ({ texts }) => holds(texts, (words) => words.includes('grösse')),
    ],
    ['a word beside a dash', { search: 'sehr' }, ({ texts }) => holds(texts, (words) => words.includes('sehr'))],
    ['a word that nobody wrote', { search: 'zebra' }, () => false],
    ['a phrase', { search: '"red car"' }, ({ texts }) => texts.some((text) => /red\s+car/.test(text))],
    [
      'a phrase and a word',
      { search: 'don "red car"' },
      ({ texts }) => texts.some((text) => /red\s+car/.test(text) && text.includes('don’t')),
    ],
    [
      'a phrase beyond ASCII',
      { search: '"Grösse ZÄHLT"' },
      ({ texts }) => texts.some((text) => text.includes('grösse zählt')),
    ],
    [
      'much at once',
      { outcome: 'success', tags: 'x', search: 'red', max_duration_ms: '9000' },
      ({ state, texts }) =>
        state.outcome === 'success' &&
        state.tags.includes('x') &&
        durationMs(state) <= 9000 &&
        holds(texts, (words) => words.includes('red')),
    ],
  ];

  it.each(cases)(
    'the trace list filters by %s, with an exact total, the same by offset and by cursor',
    async (_name, query, matches) => {
      const expected = live.filter(matches).map(({ state }) => state.trace_id);
      const byCursor: string[] = [];
      let cursor: string | null = null;
      let pages = 0;
      do {
        const page: TraceList = await list({
          ...query,
          limit: String(PAGE),
          ...(cursor === null ? {} : { cursor, offset: '3' }),
        });
        expect(page.meta.total).toBe(expected.length);
        expect(page.meta.per_page).toBe(PAGE);
        expect(page.meta.page).toBe(pages + 1);
        byCursor.push(...ids(page));
        cursor = page.meta.next_cursor;
        pages += 1;
      } while (cursor !== null);
      expect(byCursor).toEqual(expected);
      expect(pages).toBe(Math.max(1, Math.ceil(expected.length / PAGE)));
      for (const offset of [17, expected.length - 1, expected.length + 5]) {
        if (offset < 0) continue;
        const page = await list({ ...query, limit: '20', offset: String(offset) });
        expect(ids(page)).toEqual(expected.slice(offset, offset + 20));
        expect(page.meta).toMatchObject({
          total: expected.length,
          page: Math.floor(offset / 20) + 1,
          per_page: 20,
          has_more: offset + 20 < expected.length,
        });
        expect(page.meta.next_cursor === null).toBe(offset + 20 >= expected.length);
      }
    },
  );

  it.each(['0100-01-01', '1899-12-31T23:59:59Z', '1969-12-31', '2150-01-01', '9999-12-31T23:59:59Z'])(
    'the trace list accepts times beyond those that the store can represent: %s',
    async (at) => {
      const past = Date.parse(at) < NOW;
      expect((await list({ since: at })).meta.total).toBe(past ? live.length : 0);
      expect((await list({ until: at })).meta.total).toBe(past ? 0 : live.length);
      expect((await list({ until: at, offset: '5' })).data).toHaveLength(past ? 0 : 50);
    },
  );

  it('the trace list continues by cursor from a page by offset', async () => {
    const first = await list({ limit: '10', offset: '50' });
    const second = await list({ limit: '10', cursor: first.meta.next_cursor });
    expect(ids(second)).toEqual(live.slice(60, 70).map(({ state }) => state.trace_id));
    expect(second.meta).toMatchObject({ page: 7 });
    expect(second.meta).not.toHaveProperty('has_more');
  });

  it('the trace list shows nothing of another organization', async () => {
    const { data, meta } = await list({ limit: '200' }, 'org_b');
    expect(meta.total).toBe(30);
    expect(data.every((item) => Number(item.trace_id.slice('trace-'.length)) % 8 === 0)).toBe(true);
    expect((await list({}, 'org_nobody')).meta).toMatchObject({ total: 0, next_cursor: null, has_more: false });
  });

  it('the trace list keeps its cursors while new traces arrive and old ones grow', async () => {
    const own = await openTestStore();
    const deps = { ...wordsDeps(own.client), now: () => NOW };
    const spans = Array.from({ length: 30 }, (_, n) =>
      aSpan({ trace_id: `t${n}`, started_at: NOW - n * 1000, ended_at: NOW - n * 1000 + 5 }),
    );
    await own.landTraces(tracesOf(spans).map((state) => ({ state, version: 1, sign: 1 })));
    const first = await listTraces(deps, 'org_a', listQuery.parse({ limit: '10' }), signal);
    const arrived = Array.from({ length: 20 }, (_, n) =>
      aSpan({ trace_id: `new${n}`, started_at: NOW + n, ended_at: NOW + n }),
    );
    const grown = tracesOf(spans).map((state) => ({
      before: state,
      after: { ...state, spans: 2, ended_at: state.ended_at + 100 },
    }));
    await own.landTraces([
      ...tracesOf(arrived).map((state) => ({ state, version: 2, sign: 1 as const })),
      ...grown.flatMap(({ before, after }) => [
        { state: before, version: 1, sign: -1 as const },
        { state: after, version: 2, sign: 1 as const },
      ]),
    ]);
    const second = await listTraces(
      deps,
      'org_a',
      listQuery.parse({ limit: '10', cursor: first.meta.next_cursor }),
      signal,
    );
    expect(ids(second)).toEqual(Array.from({ length: 10 }, (_, n) => `t${n + 10}`));
    expect(second.data.every((item) => item.span_count === 2)).toBe(true);
    expect(second.meta.total).toBe(50);
    await own.close();
  });
});

describe('a list of a user', () => {
  /** Number of traces of each user, in the order of their start, the newest first. */
  const USERS = { many: 600, some: 60, few: 5, paired: 40 };
  const MANY = USERS.many;
  beforeAll(async () => {
    const users = Object.entries(USERS).flatMap(([user_id, traces]) => Array.from({ length: traces }, () => user_id));
    const spans = users.map((user_id, n) => {
      const started_at = NOW - n * 60_000;
      return aSpan({ org_id: 'org_u', trace_id: `u-${n}`, user_id, started_at, ended_at: started_at + 10 });
    });
    const states = tracesOf(spans);
    await store.landTraces(states.map((state) => ({ state, version: 1, sign: 1 })));
    // These states are replaced once: three rows each, of which two cancel out.
    await store.landTraces(
      states
        .filter((state) => state.user_id === 'paired')
        .flatMap((state) => [
          { state, version: 1, sign: -1 as const },
          { state, version: 2, sign: 1 as const },
        ]),
    );
  });

  it.each([
    ['few', 5, ['trace_list']],
    ['some', 60, ['trace_list']],
    ['many', MANY, ['trace_list', 'trace_total']],
    ['nobody', 0, ['trace_list']],
  ] as const)('returns the traces and the total of the user "%s"', async (user_id, total, statements) => {
    const names: string[] = [];
    const clickhouse = createClickHouse({
      url: store.database.url,
      observeQuery: (name) => {
        names.push(name);
      },
    });
    const deps = { ...wordsDeps(clickhouse), now: () => NOW };
    const first = await listTraces(deps, 'org_u', listQuery.parse({ user_id }), signal);
    expect(names).toEqual(statements);
    expect([first.data.length, first.meta.total]).toEqual([Math.min(50, total), total]);
    const found = ids(first);
    for (let cursor = first.meta.next_cursor; cursor !== null;) {
      const page = await listTraces(deps, 'org_u', listQuery.parse({ user_id, cursor, limit: '200' }), signal);
      expect(page.meta.total).toBe(total);
      found.push(...ids(page));
      cursor = page.meta.next_cursor;
    }
    const from = { many: 0, some: MANY, few: MANY + 60, nobody: 0 }[user_id];
    expect(found).toEqual(Array.from({ length: total }, (_, n) => `u-${from + n}`));
    const bounded = listQuery.parse({
      user_id,
      since: iso(NOW - (from + 2) * 60_000),
      until: iso(NOW - from * 60_000 - 1),
    });
    expect(ids(await listTraces(deps, 'org_u', bounded, signal))).toEqual(found.slice(1, 3));
    await clickhouse.close();
  });

  it.each([
    ['many', 590],
    ['paired', 50],
  ] as const)(
    'returns all traces of the user "%s" in a page of %i, whatever rows they have',
    async (user_id, limit) => {
      const deps = { ...wordsDeps(store.client), now: () => NOW };
      const page = await listTraces(deps, 'org_u', { ...listQuery.parse({ user_id }), limit }, signal);
      const from = user_id === 'many' ? 0 : MANY + 65;
      const length = Math.min(limit, USERS[user_id]);
      expect([ids(page), page.meta.total]).toEqual([Array.from({ length }, (_, n) => `u-${from + n}`), USERS[user_id]]);
    },
  );
});
