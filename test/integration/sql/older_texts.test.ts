// Texts that landed before the store had their words, or before it had postings: migrations and the
// text mover make them searchable by nearly the same words as new ones. Processes of the version before
// may go on landing beside new ones, with words and without document numbers.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DocumentSearch } from '../../../api/telemetry/spans/postings/document_search.ts';
import { searchQuery } from '../../../api/telemetry/spans/schema.ts';
import { type SearchDeps, searchSpans } from '../../../api/telemetry/spans/search.ts';
import { searchSnippets } from '../../../api/telemetry/spans/snippets.ts';
import { documentTerms } from '../../../pipeline/domain/text/text_terms.ts';
import { createClickHouse, type ClickHouse } from '../../../sql/client/client.ts';
import { migrate, readScripts } from '../../../sql/client/migrate.ts';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { startLeader } from './a_mover.ts';

const TEXTS: [string, string, string][] = [
  ['chat', JSON.stringify([{ role: 'user', content: 'my\nreservation "x" at C:\\new\\house' }]), 'It’s confirmed'],
  [
    'call',
    JSON.stringify([
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'get_weather' } }],
      },
    ]),
    'Straße nach Köln',
  ],
  ['far', '東京都に住む iPhone用 ラーメン', '한국어를 배우다 Привет ЁЖИК cafe\u0301 ﬁne'],
  ['thai', 'สวัสดีครับ', 'مُحَمَّد'],
  ['plain', 'Plain text: the loop', ''],
];
const signal = new AbortController().signal;
const NOW = Date.parse('2026-03-01T12:00:00Z');

let database: TestDatabase;
let client: ClickHouse;
let deps: SearchDeps;
let logSeq = 0;

/** Inserts texts as a version did that had no words, or as the version before postings. */
async function land(table: string, prefix: string, version: 'without words' | 'with words'): Promise<void> {
  const words = version === 'with words' ? ', words' : '';
  const rows = TEXTS.map(([span_id, prompt, response]) => ({
    org_id: 'org_a',
    started_at: NOW,
    trace_id: 't',
    span_id: `${prefix}${span_id}`,
    prompt,
    response,
    words: documentTerms(prompt, response).words,
    dl: 9,
    log_seq: ++logSeq,
    drop_on: '2026-06-01',
  }));
  await client.execute({
    name: 'land',
    sql: `INSERT INTO ${table} (org_id, started_at, trace_id, span_id, outcome, prompt, response${words}, dl, log_seq, drop_on)
      SELECT org_id, fromUnixTimestamp64Milli(started_at, 'UTC'), trace_id, span_id, 'success', prompt, response${words}, dl, log_seq, drop_on
      FROM input('org_id String, started_at Int64, trace_id String, span_id String, prompt String, response String, words String, dl UInt32, log_seq UInt64, drop_on Date') FORMAT JSONEachRow`,
    body: rows.map((row) => JSON.stringify(row)).join('\n'),
    timeoutMs: 20_000,
  });
}

beforeAll(async () => {
  database = await createTestDatabase({ empty: true });
  client = createClickHouse({ url: database.url });
  const { migrations, views } = readScripts();
  const before = migrations.filter(({ name }) => name < '0031');
  await migrate(client, { scripts: { migrations: before, views: [] } });
  await land('span_texts', 'old_', 'without words');
  await migrate(client, { scripts: { migrations, views } });
  await land('span_texts', 'beside_', 'with words');
  deps = { clickhouse: client, documents: new DocumentSearch(client) };
});

afterAll(async () => {
  await client.close();
  await database.drop();
});

const found = async (q: string): Promise<string[]> => {
  const { data } = await searchSpans(deps, 'org_a', searchQuery.parse({ q }), signal);
  return data.map(({ span_id }) => span_id).toSorted();
};

describe('texts from before postings', () => {
  it('have nearly the words that the pipeline would give them, and are not found', async () => {
    const rows = await client.rows<{ span_id: string; prompt: string; response: string; words: string }>({
      name: 'words',
      sql: 'SELECT span_id, prompt, response, words FROM span_texts',
      timeoutMs: 10_000,
    });
    expect(rows).toHaveLength(2 * TEXTS.length);
    for (const { span_id, prompt, response, words } of rows) {
      const wanted = documentTerms(prompt, response).words.split(' ');
      if (!span_id.endsWith('call')) expect(words.split(' ')).toEqual(wanted);
      expect(words.split(' ')).toEqual(expect.arrayContaining(wanted));
    }
    expect(await found('reservation')).toEqual([]);
  });

  it('get document numbers, and their words move into postings', async () => {
    await (await startLeader(client)).finish();
    const counts =
      "SELECT count(), uniqExactIf(doc, doc != 0), countIf(words != ''), countIf(reps != []) FROM span_texts";
    expect(await database.run(counts)).toBe(`${2 * TEXTS.length}\t${2 * TEXTS.length}\t0\t0\n`);
  });

  it.each([
    ['reservation', 'chat'],
    ['new house', 'chat'],
    ['STRASSE', 'call'],
    ['koln', 'call'],
    ['"straße nach köln"', 'call'],
    ['get_weather', 'call'],
    ['東京都', 'far'],
    ['한국어', 'far'],
    ['CAFÉ', 'far'],
    ['สวัสดี', 'thai'],
    ['محمد', 'thai'],
    ['"the loop"', 'plain'],
  ])('are found by %s', async (q, span_id) => {
    expect(await found(q)).toEqual([`beside_${span_id}`, `old_${span_id}`]);
  });

  it.each(['role', 'user', 'content', 'nreservation', 'function', 'assistant', 'type'])(
    'are not found by %s, which is a part of their JSON',
    async (q) => {
      expect(await found(q)).toEqual([]);
    },
  );

  it('show snippets with marks', async () => {
    const { data } = await searchSnippets(deps, 'org_a', searchQuery.parse({ q: 'strasse' }), signal);
    expect(data.map(({ snippet, marks }) => [snippet, marks])).toEqual([
      ['Straße nach Köln', [[0, 6]]],
      ['Straße nach Köln', [[0, 6]]],
    ]);
  });

  it('that a process of the version before lands or moves meanwhile are found as well', async () => {
    await land('span_texts', 'moved_', 'with words');
    await (await startLeader(client)).finish();
    expect(await found('reservation')).toEqual(['beside_chat', 'moved_chat', 'old_chat']);
  });
});
