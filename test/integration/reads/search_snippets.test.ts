import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { searchQuery, type SnippetHit } from '../../../api/telemetry/spans/schema.ts';
import { type SearchDeps, searchSpans } from '../../../api/telemetry/spans/search.ts';
import { DocumentSearch } from '../../../api/telemetry/spans/postings/document_search.ts';
import { searchSnippets } from '../../../api/telemetry/spans/snippets.ts';
import type { Span } from '../../../pipeline/domain/traces/span.ts';
import { wordsOf } from '../../../pipeline/domain/text/text_terms.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, seeded, type TestStore, tracesOf } from '../../support/store.ts';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const HOUR_MS = 3_600_000;
const signal = new AbortController().signal;
const random = seeded(7);
const VOCABULARY = ['the', 'of', 'Retry', 'naïve', 'Größe', '42', '東京', 'alpha', 'beta', 'gamma', 'refund', 'sofa'];

let store: TestStore;
let deps: SearchDeps;
let spans: Span[];

const aText = (words: number): string =>
  Array.from({ length: words }, () => VOCABULARY[Math.floor(random() ** 2 * VOCABULARY.length)] ?? '').join(
    random() < 0.5 ? ' ' : ', ',
  );

beforeAll(async () => {
  store = await openTestStore();
  deps = { clickhouse: store.client, documents: new DocumentSearch(store.client) };
  spans = Array.from({ length: 200 }, (_, n) =>
    aSpan({
      trace_id: `t${n % 40}`,
      name: `step ${n}`,
      started_at: NOW - Math.floor(random() * 240) * HOUR_MS - n,
      agent_id: n % 40 < 10 ? 'planner' : 'writer',
      tags: n % 40 < 5 ? ['vip', 'eu'] : [],
      prompt: JSON.stringify([{ role: 'user', content: `${aText(Math.floor(random() * 300))}\nrefund` }]),
      response: aText(Math.floor(random() * 60)),
    }),
  );
  await store.landSpans(spans);
  await store.landTraces(tracesOf(spans).map((state) => ({ state, version: 1, sign: 1 })));
  await store.moveTexts();
});
afterAll(() => store.close());

const snippets = (query: Record<string, string>, org = 'org_a') =>
  searchSnippets(deps, org, searchQuery.parse({ snippets: 'true', limit: '200', ...query }), signal);
const whole = (query: Record<string, string>) =>
  searchSpans(deps, 'org_a', searchQuery.parse({ limit: '200', ...query }), signal);

const marked = ({ snippet, marks }: Pick<SnippetHit, 'snippet' | 'marks'>): string[] =>
  marks.map(([start, end]) => wordsOf(snippet.slice(start, end)).join(' '));
const spanOf = (id: string): Span | undefined => spans.find(({ span_id }) => span_id === id);

describe('search with snippets', () => {
  it.each(['sofa', 'the sofa', 'größe 東京 gamma', 'retry the of 42', 'naïve nowhere'])(
    'returns the hits of the search without snippets, in their order, with the parts of their scores: %s',
    async (q) => {
      const [short, long] = [await snippets({ q }), await whole({ q })];
      expect(short.data.map(({ span_id }) => span_id)).toEqual(long.data.map(({ span_id }) => span_id));
      expect(short.meta).toMatchObject(long.meta);
      for (const [index, hit] of short.data.entries()) {
        expect(hit.score).toBeCloseTo(long.data[index]?.score ?? NaN, 9);
        expect(hit.score_parts.reduce((sum, { score }) => sum + score, 0)).toBeCloseTo(hit.score, 9);
      }
    },
  );

  it('returns each hit with its span, and a snippet whose marks are words of the query', async () => {
    const { data } = await snippets({ q: 'sofa 東京' });
    expect(data.length).toBeGreaterThan(0);
    for (const hit of data) {
      const span = spanOf(hit.span_id);
      expect(hit).toMatchObject({ name: span?.name, agent_id: span?.agent_id, trace_id: span?.trace_id });
      expect(hit.started_at).toBe(new Date(span?.started_at ?? 0).toISOString());
      expect(marked(hit).length).toBeGreaterThan(0);
      expect(marked(hit).every((word) => ['sofa', '東京'].includes(word))).toBe(true);
      expect(hit.snippet.length).toBeLessThan(400);
    }
  });

  it('returns the same for texts that landed before they had the names of their spans', async () => {
    const known = await snippets({ q: 'sofa 東京' });
    await store.database.run(
      "ALTER TABLE span_texts UPDATE name = '', flags = 0 WHERE trace_id != 't3' SETTINGS mutations_sync = 1",
    );
    const { data } = await snippets({ q: 'sofa 東京' });
    expect(data).toEqual(known.data);
    expect(data.some(({ trace_id }) => trace_id === 't3')).toBe(true);
  });

  it('shows the lines of a prompt that is stored as JSON without their escapes', async () => {
    const { data } = await snippets({ q: 'refund' });
    expect(data.length).toBeGreaterThan(0);
    expect(data.filter(({ snippet }) => snippet.includes('\\') || snippet.includes('"'))).toEqual([]);
    expect((await snippets({ q: 'user role content' })).data).toEqual([]);
  });

  it('returns the words of the query with their counts, those that occur nowhere included', async () => {
    const { meta } = await snippets({ q: 'sofa nowhere' });
    expect(meta.terms?.map(({ word }) => word)).toEqual(['nowhere', 'sofa']);
    expect(meta.terms?.[0]).toEqual({ word: 'nowhere', df: 0, idf: 0 });
    expect(meta.terms?.[1]?.df).toBeGreaterThan(0);
    expect(meta.terms?.[1]?.idf).toBeGreaterThan(0);
    expect((await snippets({ q: 'nowhere' })).data).toEqual([]);
  });
});

it('tells how many texts of the asked time have arrived and cannot be searched yet', async () => {
  const late = (over: Partial<Span>): Span =>
    aSpan({ org_id: 'org_late', trace_id: 'late', started_at: NOW, prompt: 'sofa', response: '', ...over });
  await store.landSpans([late({}), late({ started_at: NOW - 3 * HOUR_MS }), late({ org_id: 'org_other' })]);
  const waiting = async (query: Record<string, string>) =>
    (await snippets({ q: 'sofa', ...query }, 'org_late')).meta.waiting;
  expect(await waiting({})).toBe(2);
  expect(await waiting({ since: new Date(NOW - HOUR_MS).toISOString() })).toBe(1);
  expect(await waiting({ until: new Date(NOW - HOUR_MS).toISOString() })).toBe(1);
  await store.moveTexts();
  expect(await waiting({})).toBe(0);
});

describe.each(['true', 'false'])('filters (snippets=%s)', (shape) => {
  const ids = async (query: Record<string, string>): Promise<string[]> => {
    const { data } = shape === 'true' ? await snippets(query) : await whole(query);
    return data.map(({ span_id }) => span_id).toSorted();
  };
  const having = (fits: (span: Span) => boolean): string[] =>
    spans
      .filter((span) => `${span.prompt} ${span.response}`.includes('sofa') && fits(span))
      .map(({ span_id }) => span_id)
      .toSorted();

  it('agent_id and tags select spans of matching traces', async () => {
    expect(await ids({ q: 'sofa', agent_id: 'planner' })).toEqual(having(({ agent_id }) => agent_id === 'planner'));
    expect(await ids({ q: 'sofa', tags: 'vip,us' })).toEqual(having(({ tags }) => tags.includes('vip')));
    expect(await ids({ q: 'sofa', agent_id: 'writer', tags: 'vip' })).toEqual([]);
  });

  it.each([
    [30, 100],
    [0, 20],
    [5, 6],
  ])('since and until bound the start: %d to %d hours ago', async (newest, oldest) => {
    const [since, until] = [NOW - oldest * HOUR_MS, NOW - newest * HOUR_MS];
    const query = { q: 'sofa', since: new Date(since).toISOString(), until: new Date(until).toISOString() };
    expect(await ids(query)).toEqual(having(({ started_at }) => started_at >= since && started_at <= until));
  });
});
