// Texts that landed before the store had their words: migrations make them searchable by nearly the
// same words as new ones, and processes of the version before may go on landing beside new ones.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { searchQuery } from '../../../api/telemetry/spans/schema.ts';
import { searchSpans } from '../../../api/telemetry/spans/search.ts';
import { searchSnippets } from '../../../api/telemetry/spans/snippets.ts';
import { documentTerms } from '../../../pipeline/domain/text/text_terms.ts';
import { createClickHouse, type ClickHouse } from '../../../sql/client/client.ts';
import { migrate, readScripts } from '../../../sql/client/migrate.ts';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { eventually } from '../../support/wait.ts';

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
let logSeq = 0;

/** Inserts texts as the version before did. */
async function landAsBefore(table: string, prefix: string): Promise<void> {
  const rows = TEXTS.map(([span_id, prompt, response]) => ({
    org_id: 'org_a',
    started_at: NOW,
    trace_id: 't',
    span_id: `${prefix}${span_id}`,
    prompt,
    response,
    dl: 9,
    log_seq: ++logSeq,
    drop_on: '2026-06-01',
  }));
  await client.execute({
    name: 'land',
    sql: `INSERT INTO ${table} (org_id, started_at, trace_id, span_id, outcome, prompt, response, dl, log_seq, drop_on)
      SELECT org_id, fromUnixTimestamp64Milli(started_at, 'UTC'), trace_id, span_id, 'success', prompt, response, dl, log_seq, drop_on
      FROM input('org_id String, started_at Int64, trace_id String, span_id String, prompt String, response String, dl UInt32, log_seq UInt64, drop_on Date') FORMAT JSONEachRow`,
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
  await landAsBefore('span_texts', 'old_');
  await migrate(client, { scripts: { migrations, views } });
  await landAsBefore('span_texts', 'beside_');
});

afterAll(async () => {
  await client.close();
  await database.drop();
});

const found = async (q: string): Promise<string[]> => {
  const { data } = await searchSpans(client, 'org_a', searchQuery.parse({ q }), signal);
  return data.map(({ span_id }) => span_id).toSorted();
};

describe('texts from before the column of words', () => {
  it('have nearly the words that the pipeline would give them', async () => {
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
    const { data } = await searchSnippets(client, 'org_a', searchQuery.parse({ q: 'strasse' }), signal);
    expect(data.map(({ snippet, marks }) => [snippet, marks])).toEqual([
      ['Straße nach Köln', [[0, 6]]],
      ['Straße nach Köln', [[0, 6]]],
    ]);
  });

  it('are written with their words in the background', async () => {
    await eventually(async () => {
      const [row] = await client.rows<{ waiting: number }>({
        name: 'mutations',
        sql: "SELECT toUInt32(count()) AS waiting FROM system.mutations WHERE database = currentDatabase() AND table = 'span_texts' AND NOT is_done",
        timeoutMs: 5000,
      });
      return row?.waiting === 0;
    });
    const parts = await client.rows<{ words: number }>({
      name: 'parts',
      sql: "SELECT toUInt32(countIf(column = 'words')) AS words FROM system.parts_columns WHERE database = currentDatabase() AND table = 'span_texts' AND active GROUP BY name",
      timeoutMs: 5000,
    });
    expect(parts.length).toBeGreaterThan(0);
    for (const { words } of parts) expect(words).toBe(1);
    expect(await found('reservation')).toEqual(['beside_chat', 'old_chat']);
  });

  it('that an old process lands are moved with their words', async () => {
    await landAsBefore('span_texts_recent', 'recent_');
    await client.execute({
      name: 'move',
      sql: 'INSERT INTO span_texts (org_id, started_at, trace_id, span_id, prompt, response, words, dl, log_seq, drop_on) SELECT org_id, started_at, trace_id, span_id, prompt, response, words, dl, log_seq, drop_on FROM span_texts_recent',
      timeoutMs: 10_000,
    });
    expect(await found('reservation')).toEqual(['beside_chat', 'old_chat', 'recent_chat']);
  });
});
