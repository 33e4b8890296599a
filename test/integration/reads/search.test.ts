import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { searchQuery } from '../../../api/telemetry/spans/schema.ts';
import { type SearchDeps, searchSpans } from '../../../api/telemetry/spans/search.ts';
import { DocumentSearch } from '../../../api/telemetry/spans/postings/document_search.ts';
import { inverseDocumentFrequency, termScore } from '../../../pipeline/domain/text/bm25.ts';
import type { Span } from '../../../pipeline/domain/traces/span.ts';
import { definedWords } from '../../support/defined_words.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, seeded, type TestStore } from '../../support/store.ts';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const HOUR_MS = 3_600_000;
const signal = new AbortController().signal;
const random = seeded(11);
const VOCABULARY = [
  'the',
  'of',
  'Retry',
  'TIMEOUT',
  'naïve',
  'Größe',
  'x1',
  '42',
  'ключ',
  '東京',
  'alpha',
  'beta',
  'gamma',
  'delta',
  'rare',
  'tool',
  'error',
  'e',
  'İstanbul',
  'don’t',
];
const GLUE = [' ', ', ', '—', '\n', '"', '. ', ' “', '_', '/'];

const SEGMENT_SPANS = 100;

let store: TestStore;
let deps: SearchDeps;
let spans: Span[];

function aText(words: number): string {
  return Array.from(
    { length: words },
    () =>
      `${VOCABULARY[Math.floor(random() ** 2 * VOCABULARY.length)] ?? ''}${GLUE[Math.floor(random() * GLUE.length)] ?? ''}`,
  ).join('');
}

beforeAll(async () => {
  store = await openTestStore();
  deps = { clickhouse: store.client, documents: new DocumentSearch(store.client) };
  spans = Array.from({ length: 400 }, (_, n) =>
    aSpan({
      org_id: n % 10 === 0 ? 'org_b' : 'org_a',
      trace_id: `t${n % 50}`,
      started_at: NOW - Math.floor(random() * 240) * HOUR_MS - n,
      model: n % 3 === 0 ? 'gpt-4o' : 'claude',
      outcome: n % 7 === 0 ? 'error' : 'success',
      cost_pico_usd: BigInt(n) * 1_000_000_000n,
      prompt: n % 20 === 1 ? '' : aText(Math.floor(random() * 80)) + (n % 33 === 2 ? ' needle' : ''),
      response: n % 20 === 3 ? '' : aText(Math.floor(random() * 60)),
    }),
  );
  // Each hundred is a segment; the oldest come first.
  spans.sort((a, b) => a.started_at - b.started_at);
  for (let first = 0; first < spans.length; first += SEGMENT_SPANS) {
    await store.landSpans(spans.slice(first, first + SEGMENT_SPANS));
    await store.moveTexts();
    store.beginSegment();
  }
});
afterAll(() => store.close());

/** Computes BM25 from its definition over the texts themselves. */
function reference(
  q: string,
  where: (span: Span) => boolean,
  since = 0,
): { span_id: string; score: number; at: number }[] {
  const documents = spans
    .filter((span) => span.org_id === 'org_a' && span.started_at >= since)
    .map((span) => ({ span, words: [...definedWords(span.prompt), ...definedWords(span.response)] }))
    .filter(({ words }) => words.length > 0);
  const avgdl = documents.reduce((sum, { words }) => sum + words.length, 0) / documents.length;
  const query = [...new Set(definedWords(q))];
  return documents
    .filter(({ span }) => where(span))
    .map(({ span, words }) => ({
      span_id: span.span_id,
      at: span.started_at,
      score: query.reduce((sum, word) => {
        const df = documents.filter((document) => document.words.includes(word)).length;
        const tf = words.filter((other) => other === word).length;
        return (
          sum + (tf === 0 ? 0 : termScore(inverseDocumentFrequency(documents.length, df), tf, words.length, avgdl))
        );
      }, 0),
    }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || b.at - a.at);
}

const search = (query: Record<string, string>) =>
  searchSpans(deps, 'org_a', searchQuery.parse({ limit: '200', ...query }), signal);
const all = (): boolean => true;

describe('the span search', () => {
  const cases: [string, Record<string, string>, (span: Span) => boolean][] = [
    ['one word', { q: 'rare' }, all],
    ['several words, whatever their case', { q: 'Timeout RETRY gamma' }, all],
    ['stop words', { q: 'the of' }, all],
    ['stop words and others', { q: 'the rare tool' }, all],
    ['words beyond ASCII', { q: 'GRÖSSE größe naïve КЛЮЧ 東京' }, all],
    ['words beside such characters', { q: 'don t e' }, all],
    ['a letter whose lower case is two', { q: 'İstanbul' }, all],
    ['words without their diacritics', { q: 'grosse NAIVE istanbul' }, all],
    ['pairs of characters', { q: '東京都' }, all],
    ['one word twice', { q: 'alpha alpha beta' }, all],
    ['a word that nobody wrote among others', { q: 'zebra 42' }, all],
    ['a model', { q: 'delta alpha', model: 'claude' }, (span) => span.model === 'claude'],
    ['an outcome', { q: 'delta alpha', outcome: 'error' }, (span) => span.outcome === 'error'],
    [
      'a range of cost',
      { q: 'alpha', min_cost_usd: '0.05', max_cost_usd: '0.2' },
      (span) => span.cost_pico_usd >= 50_000_000_000n && span.cost_pico_usd <= 200_000_000_000n,
    ],
  ];

  it.each(cases)('the span search ranks as BM25 is defined: %s', async (_name, query, where) => {
    const expected = reference(query['q'] ?? '', where);
    const { data, meta } = await search(query);
    expect(meta).toEqual({ candidates: expected.length, truncated: false });
    expect(data).toHaveLength(Math.min(200, expected.length));
    expect(expected.length).toBeGreaterThan(0);
    const scores = new Map(expected.map(({ span_id, score }) => [span_id, score]));
    for (const [index, hit] of data.entries()) {
      expect(hit.score).toBeCloseTo(scores.get(hit.span_id) ?? NaN, 9);
      expect(hit.score).toBeCloseTo(expected[index]?.score ?? NaN, 9);
      const span = spans.find((one) => one.span_id === hit.span_id);
      expect(hit).toMatchObject({
        trace_id: span?.trace_id,
        prompt: span?.prompt,
        response: span?.response,
        model: span?.model,
      });
    }
  });

  it.each([NOW - 100 * HOUR_MS - 30 * 60_000, NOW - 12 * HOUR_MS, Date.parse('2026-02-25T00:00:00Z')])(
    'the span search counts in the searched time only: since %d',
    async (since) => {
      const expected = reference('timeout the alpha', all, since);
      const { data, meta } = await search({ q: 'timeout the alpha', since: new Date(since).toISOString() });
      expect(meta.candidates).toBe(expected.length);
      expect(data.map((hit) => hit.span_id)).toEqual(expected.slice(0, 200).map(({ span_id }) => span_id));
      for (const [index, hit] of data.entries()) expect(hit.score).toBeCloseTo(expected[index]?.score ?? NaN, 9);
    },
  );

  it.each([
    ['documents', { documents: 150, postings: Infinity }, 1],
    ['postings', { documents: Infinity, postings: 400 }, 2],
    ['postings of one segment', { documents: Infinity, postings: 1 }, 1],
  ])('a search with a bound on %s ranks the newest segments and says so', async (_what, bounds, segments) => {
    const since = spans[spans.length - segments * SEGMENT_SPANS]?.started_at ?? 0;
    const expected = reference('the of needle', all, since);
    const query = searchQuery.parse({ q: 'the of needle', limit: '200' });
    const { data, meta } = await searchSpans({ ...deps, bounds }, 'org_a', query, signal);
    expect(meta).toEqual({ candidates: expected.length, truncated: true });
    expect(data.map(({ span_id }) => span_id)).toEqual(expected.map(({ span_id }) => span_id));
    for (const [index, hit] of data.entries()) expect(hit.score).toBeCloseTo(expected[index]?.score ?? NaN, 9);
  });

  it('a repeated search, and one after further documents and a deletion, see what the store holds', async () => {
    const extra = aSpan({ org_id: 'org_a', trace_id: 'extra', started_at: NOW, prompt: 'a walrus', response: '' });
    const find = async () => (await search({ q: 'walrus' })).data.map(({ span_id }) => span_id);
    expect([await find(), await find()]).toEqual([[], []]);
    await store.landSpans([extra]);
    await store.moveTexts();
    expect([await find(), await find()]).toEqual([[extra.span_id], [extra.span_id]]);
    await store.database.run("DELETE FROM span_texts WHERE trace_id = 'extra'");
    expect(await find()).toEqual([]);
  });

  it('many searches at a time answer as one by one', async () => {
    const queries = ['alpha', 'the of', 'needle', 'rare tool', '東京', 'timeout retry', 'delta', 'x1 42'];
    const alone = [];
    for (const q of queries) alone.push(await search({ q }));
    expect(await Promise.all(queries.map((q) => search({ q })))).toEqual(alone);
  });

  it('the span search answers nothing for words that do not occur, and for an organization without texts', async () => {
    expect(await search({ q: 'zebra' })).toEqual({ data: [], meta: { candidates: 0, truncated: false } });
    expect(await searchSpans(deps, 'org_nobody', searchQuery.parse({ q: 'alpha' }), signal)).toEqual({
      data: [],
      meta: { candidates: 0, truncated: false },
    });
  });
});

describe('times beyond those that the store can hold', () => {
  it.each([
    '0100-01-01',
    '1899-12-31T23:59:59Z',
    '1969-12-31',
    '2150-01-01',
    '9999-12-31T23:59:59Z',
    '9999-12-31T23:59:59-01:00',
  ])('the span search accepts times beyond those that the store can represent: %s', async (since) => {
    const expected = reference('needle', all, Date.parse(since));
    expect((await search({ q: 'needle', since })).data).toHaveLength(expected.length);
  });
});
