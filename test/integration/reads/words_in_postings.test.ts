// Words in the texts of traces, by their postings: organizations that share segments, texts before,
// during and after their move, deleted texts, and words of very many documents. Also phrases, which
// are read from the texts.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { facetsQuery } from '../../../api/telemetry/traces/facet_schema.ts';
import { countFacets } from '../../../api/telemetry/traces/facets.ts';
import { listTraces } from '../../../api/telemetry/traces/list.ts';
import { findPhrases, type PhraseBounds, type PhraseTraces } from '../../../api/telemetry/traces/phrases.ts';
import { listQuery } from '../../../api/telemetry/traces/schema.ts';
import { traceSeries } from '../../../api/telemetry/traces/series.ts';
import { seriesQuery } from '../../../api/telemetry/traces/series_schema.ts';
import { readByWords, readPage, type TraceRow } from '../../../api/telemetry/traces/store.ts';
import type { WordsDeps } from '../../../api/telemetry/traces/words.ts';
import type { Span } from '../../../pipeline/domain/traces/span.ts';
import { type ClickHouse, createClickHouse } from '../../../sql/client/client.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, type TestStore, tracesOf } from '../../support/store.ts';
import { waysToFind, wordsDeps } from '../../support/words.ts';

const NOW = Date.parse('2026-03-01T00:00:00Z');
const HOUR_MS = 3_600_000;
const signal = new AbortController().signal;

let store: TestStore;
let ways: ReturnType<typeof waysToFind>;
beforeAll(async () => {
  store = await openTestStore();
  ways = waysToFind(store.client);
});
afterAll(() => store.close());

/** Lands spans and their traces. */
async function land(spans: readonly Span[]): Promise<void> {
  await store.landSpans(spans);
  await store.landTraces(tracesOf(spans).map((state) => ({ state, version: 1, sign: 1 })));
}

const spanOf = (org_id: string, trace_id: string, hours: number, prompt: string, response = ''): Span =>
  aSpan({
    org_id,
    trace_id,
    started_at: NOW - hours * HOUR_MS,
    ended_at: NOW - hours * HOUR_MS + 10,
    prompt,
    response,
  });

/** Returns the ids of a list, which every way to find the words returns. */
async function listed(org_id: string, search: string, more: Record<string, string> = {}): Promise<string[]> {
  const query = listQuery.parse({ search, limit: '200', ...more });
  const found = new Map<string, string[]>();
  for (const [way, deps] of Object.entries(ways)) {
    const { data, meta } = await listTraces({ ...deps(), now: () => NOW }, org_id, query, signal);
    expect(meta.total, way).toBe(data.length);
    found.set(
      way,
      data.map(({ trace_id }) => trace_id),
    );
  }
  const [ids = [], ...others] = found.values();
  for (const other of others) expect(other, JSON.stringify([...found])).toEqual(ids);
  return ids;
}

describe('a search of the trace list', () => {
  it('finds only the texts of its organization in a segment that several organizations share', async () => {
    await land([
      spanOf('org_s1', 's1-first', 3, 'a shared violet word'),
      spanOf('org_s2', 's2-first', 2, 'a shared violet word'),
      spanOf('org_s1', 's1-other', 1, 'a shared word'),
      spanOf('org_s2', 's2-other', 4, 'violet'),
    ]);
    await store.moveTexts();
    expect(await listed('org_s1', 'violet')).toEqual(['s1-first']);
    expect(await listed('org_s2', 'violet')).toEqual(['s2-first', 's2-other']);
    expect(await listed('org_s1', 'shared word')).toEqual(['s1-other', 's1-first']);
    expect(await listed('org_s2', 'word violet')).toEqual(['s2-first']);
    expect(await listed('org_s1', '"shared word"')).toEqual(['s1-other']);
    expect(await listed('org_nobody', 'violet')).toEqual([]);
  });

  it('finds all words only in one text, whichever of prompt and response has them', async () => {
    await land([
      spanOf('org_one', 'apart', 3, 'amber', 'nothing'),
      spanOf('org_one', 'apart', 2.9, 'cobalt'),
      spanOf('org_one', 'together', 2, 'amber', 'cobalt'),
    ]);
    await store.moveTexts();
    expect(await listed('org_one', 'amber cobalt')).toEqual(['together']);
    expect(await listed('org_one', '"amber cobalt"')).toEqual(['together']);
    expect(await listed('org_one', '"cobalt amber"')).toEqual([]);
    expect(await listed('org_one', 'amber')).toEqual(['together', 'apart']);
    expect(await listed('org_one', 'amber unsaid')).toEqual([]);
  });

  it('finds a text once it has moved, also while both tables have it', async () => {
    await land([spanOf('org_move', 'early', 20, 'maroon sofa')]);
    await store.moveTexts();
    store.beginSegment();
    await land([spanOf('org_move', 'late', 1, 'maroon chair')]);
    expect(await listed('org_move', 'maroon')).toEqual(['early']);
    await store.moveTexts(false);
    expect(await listed('org_move', 'maroon')).toEqual(['late', 'early']);
    expect(await listed('org_move', '"maroon chair"')).toEqual(['late']);
    await store.database.run('TRUNCATE TABLE span_texts_recent');
    expect(await listed('org_move', 'maroon')).toEqual(['late', 'early']);
    expect(await listed('org_move', 'maroon', { since: new Date(NOW - 2 * HOUR_MS).toISOString() })).toEqual(['late']);
  });

  it('does not find a deleted text, nor postings of a document that never came', async () => {
    await land([
      spanOf('org_gone', 'kept', 2, 'ivory lamp'),
      spanOf('org_gone', 'deleted', 1, 'ivory lamp'),
      spanOf('org_gone', 'kept', 1.9, 'no more'),
    ]);
    await store.moveTexts();
    await store.database.run(
      `INSERT INTO span_words SELECT any(week), any(word), segment, [65000, 65001], [1, 1] FROM span_words WHERE word = cityHash64('ivory') GROUP BY segment`,
    );
    await store.database.run(
      "ALTER TABLE span_texts DELETE WHERE org_id = 'org_gone' AND trace_id = 'deleted' SETTINGS mutations_sync = 1",
    );
    expect(await listed('org_gone', 'ivory')).toEqual(['kept']);
    expect(await listed('org_gone', '"ivory lamp"')).toEqual(['kept']);
  });

  it('finds words that more documents have than a set may hold', async () => {
    const spans = Array.from({ length: 9 }, (_, n) =>
      spanOf('org_many', `many-${n}`, n, n % 3 === 0 ? 'teal' : 'grey'),
    );
    for (const span of spans) {
      await land([span, spanOf('org_else', `else-${span.trace_id}`, 1, 'teal everywhere')]);
      await store.moveTexts();
      store.beginSegment();
    }
    const segments = `SELECT bitShiftRight(doc, 16) AS segment, toMonday(max(drop_on)) AS week FROM span_texts WHERE org_id = 'org_many' GROUP BY segment`;
    await store.database.run(
      `INSERT INTO span_words SELECT week, cityHash64('everywhere'), segment, range(65536), arrayWithConstant(65536, 1) FROM (${segments})`,
    );
    const all = spans.map(({ trace_id }) => trace_id);
    expect(await listed('org_many', 'everywhere')).toEqual(all);
    expect(await listed('org_many', 'everywhere teal')).toEqual(['many-0', 'many-3', 'many-6']);
    const since = new Date(NOW - 4.5 * HOUR_MS).toISOString();
    expect(await listed('org_many', 'everywhere', { since })).toEqual(all.slice(0, 5));
    const found = await readByWords(store.client, { org_id: 'org_many', words: ['everywhere'], rows: 4 }, { signal });
    expect(found).toHaveLength(4);
    const rows = await readPage(store.client, { org_id: 'org_many', rows: 100 });
    const phrases = { clickhouse: store.client, org_id: 'org_many', words: ['everywhere'], phrases: ['grey'], signal };
    expect((await findPhrases(phrases, rows)).rows.map(({ trace_id }) => trace_id)).toEqual(
      all.filter((_, n) => n % 3 !== 0),
    );
  });
});

it('reads postings once for the list, the facets and the series of one page, and without their counts', async () => {
  const spans = Array.from({ length: 6 }, (_, n) =>
    spanOf('org_page', `page-${n}`, 1 + n, n % 2 === 0 ? 'ochre ochre door' : 'a door'),
  );
  await land(spans);
  await store.moveTexts();
  const bounds = { ms: 60_000, memoryBytesMax: 250_000_000, tracesCountedMax: 1_000_000 };
  const query = { search: 'ochre door', since: new Date(NOW - 48 * HOUR_MS).toISOString() };
  const page = async (deps: WordsDeps) => {
    const all = { ...deps, now: () => NOW };
    const [list, facets, series] = await Promise.all([
      listTraces(all, 'org_page', listQuery.parse(query), signal),
      countFacets(all, 'org_page', facetsQuery.parse({ ...query, fields: 'outcome' }), signal, bounds),
      traceSeries(all, 'org_page', seriesQuery.parse(query), signal, bounds),
    ]);
    return { list, facets, series };
  };
  const names: string[] = [];
  const counted = createClickHouse({
    url: store.database.url,
    observeQuery: (name) => {
      names.push(name);
    },
  });
  const shared = await page(wordsDeps(counted));
  await counted.close();
  expect(shared.list.data.map(({ trace_id }) => trace_id)).toEqual(['page-0', 'page-2', 'page-4']);
  for (const [way, deps] of Object.entries(ways)) expect(await page(deps()), way).toEqual(shared);
  expect(names.filter((name) => name === 'search_postings')).toHaveLength(1);
});

describe('a search for phrases in the texts of traces', () => {
  const BOUNDS: PhraseBounds = {
    groupWordsMax: 1e6,
    groupTextsMax: 1000,
    statementBytesMax: 1e9,
    textBytesMax: 1e9,
    listBytesMax: 1e9,
  };
  const TRACES = 12;
  let counted: ClickHouse;
  let rows: TraceRow[];
  /** Statements that read texts. */
  let reads = 0;

  beforeAll(async () => {
    counted = createClickHouse({
      url: store.database.url,
      observeQuery: (name) => {
        if (name === 'trace_document_texts') reads += 1;
      },
    });
    // The phrase is in every text of traces 0, 3, …, in the oldest text of 1, 4, …, in no text of the others.
    const spans = Array.from({ length: TRACES * 5 }, (_, n) => {
      const [trace, text] = [Math.floor(n / 5), n % 5];
      const has = trace % 3 === 0 || (trace % 3 === 1 && text === 0);
      return spanOf('org_p', `p-${trace}`, 10 + trace - text / 100, has ? 'the blue door' : 'the door is blue');
    });
    await land(spans);
    await store.moveTexts();
    rows = await readPage(store.client, { org_id: 'org_p', rows: 100 });
    expect(rows.map(({ trace_id }) => trace_id)).toEqual(Array.from({ length: TRACES }, (_, n) => `p-${n}`));
  });
  afterAll(() => counted.close());

  const search = (traces: readonly TraceRow[], bounds: Partial<PhraseBounds>): Promise<PhraseTraces> => {
    reads = 0;
    const asked = { org_id: 'org_p', words: ['blue', 'door'], phrases: ['blue door'], signal };
    return findPhrases({ clickhouse: counted, ...asked, bounds: { ...BOUNDS, ...bounds } }, traces);
  };
  const having = (n: number): boolean => n % 3 !== 2;

  it('returns the traces that have the phrase in any text, newest first', async () => {
    const found = await search(rows, {});
    expect(found.searched).toBe(TRACES);
    expect(found.rows).toEqual(rows.filter((_, n) => having(n)));
    expect(reads).toBe(1);
  });

  it('reads no further text of a trace that has matched', async () => {
    const found = await search(rows.slice(0, 1), { groupTextsMax: 1 });
    expect(found).toEqual({ rows: rows.slice(0, 1), searched: 1 });
    expect(reads).toBe(1);
    expect(await search(rows.slice(1, 2), { groupTextsMax: 1 })).toEqual({ rows: rows.slice(1, 2), searched: 1 });
    expect(reads).toBe(5);
    // The newest text of each trace, then the 32 others of the 8 traces that have not matched.
    await search(rows, { groupTextsMax: TRACES });
    expect(reads).toBe(1 + Math.ceil(32 / TRACES));
  });

  it.each<Partial<PhraseBounds>>([
    { textBytesMax: 1, groupTextsMax: 1 },
    { textBytesMax: 1, groupWordsMax: 1 },
    { textBytesMax: 200, groupTextsMax: 3 },
    { textBytesMax: 100, groupTextsMax: 7, statementBytesMax: 1 },
    { listBytesMax: 1 },
  ])('leaves older traces to the next search beyond its bounds, %o, and misses none', async (bounds) => {
    const found: TraceRow[] = [];
    let searches = 0;
    for (let at = 0; at < rows.length; searches += 1) {
      const part = await search(rows.slice(at), bounds);
      expect(part.searched).toBeGreaterThan(0);
      found.push(...part.rows);
      at += part.searched;
    }
    expect(searches).toBeGreaterThan(1);
    expect(found).toEqual(rows.filter((_, n) => having(n)));
  });

  it('finds nothing in traces whose texts are gone', async () => {
    expect(await search([], {})).toEqual({ rows: [], searched: 0 });
    const foreign = rows.map((row) => ({ ...row, trace_key: `${BigInt(row.trace_key) + 1n}` }));
    expect(await search(foreign, {})).toEqual({ rows: [], searched: TRACES });
  });
});
