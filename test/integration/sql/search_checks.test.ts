// The checks of search that the chaos suite makes: they report nothing of texts that the pipeline
// moved or the benchmark filled in, and find each kind of damage.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { documentTerms } from '../../../pipeline/domain/text/text_terms.ts';
import { BENCH_TEXTS_DDL, type FillPlan, largeTexts, postingsSql, textsSql } from '../../bench/fill_sql.ts';
import { type RunSql, sqlRunner } from '../../bench/store.ts';
import { searchChecks } from '../../chaos/search_checks.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, type TestStore } from '../../support/store.ts';

let store: TestStore;
let runSql: RunSql;

beforeEach(async () => {
  store = await openTestStore();
  runSql = sqlRunner(store.database.url);
});

afterEach(() => store.close());

const breaches = async (where = '1'): Promise<string[]> =>
  (await searchChecks(runSql, where)).filter(({ breach }) => breach).map(({ what }) => what);

const SYNC = { mutations_sync: '2', lightweight_deletes_sync: '2' };
const DOCUMENT =
  'toMonday(drop_on) AS week, bitShiftRight(doc, 16) AS segment, [toUInt16(bitAnd(doc, 65535))] AS places';
const SENTENCES = ['red apples, and red pears', 'der Müller aus Köln', '東京都に住む', '?!', 'it’s the the the loop'];

describe('texts that the pipeline moved', () => {
  beforeEach(async () => {
    for (const org_id of ['org_a', 'org_b'])
      await store.landSpans(SENTENCES.map((prompt, index) => aSpan({ org_id, prompt, response: `answer ${index}` })));
    await store.moveTexts();
  });

  it('break no check', async () => {
    expect(await breaches()).toEqual([]);
    expect(await breaches("org_id = 'org_b'")).toEqual([]);
    expect(await breaches("org_id = 'org_none'")).toEqual([]);
  });

  it.each([
    [
      'a lost posting',
      "DELETE FROM span_words WHERE word = cityHash64('pears')",
      ['words of all texts, in postings', 'words of texts without their posting'],
    ],
    [
      'a posting of a word that is not in the text',
      `INSERT INTO span_words (week, word, segment, places, counts) SELECT week, cityHash64('green'), segment, places, [1] FROM (SELECT ${DOCUMENT} FROM span_texts LIMIT 1)`,
      ['words of all texts, in postings', 'postings that are of no word of their text'],
    ],
    [
      'a posting that is there twice',
      "INSERT INTO span_words SELECT * FROM span_words WHERE word = cityHash64('pears')",
      ['words of all texts, in postings', 'postings given twice'],
    ],
    [
      'a text without a document number',
      "ALTER TABLE span_texts UPDATE doc = 0 WHERE response = 'answer 0' AND org_id = 'org_a'",
      [
        'texts with words and without a document number',
        'words of all texts, in postings',
        'words of texts without their posting',
      ],
    ],
    [
      'a document number that two texts have',
      "INSERT INTO span_texts (org_id, span_id, dl, doc, drop_on) SELECT org_id, 'other', 0, doc, drop_on FROM span_texts WHERE prompt = '?!' AND org_id = 'org_a'",
      ['document numbers given twice'],
    ],
    [
      'a wrong number of words',
      "ALTER TABLE span_texts UPDATE dl = dl + 1 WHERE prompt = '?!' AND org_id = 'org_a'",
      ['texts that do not have the number of their words, or store words', 'words of all texts, in postings'],
    ],
  ])('break a check by %s', async (_damage, sql, broken) => {
    await runSql(sql, SYNC);
    expect(await breaches()).toEqual(broken);
  });

  it('break no check by places that no document has', async () => {
    await runSql(
      `INSERT INTO span_words (week, word, segment, places, counts) SELECT week, cityHash64('pears'), segment, [60000], [1] FROM (SELECT ${DOCUMENT} FROM span_texts LIMIT 1)`,
    );
    expect(await breaches()).toEqual([]);
  });
});

describe('texts that the benchmark filled in', () => {
  const plan: FillPlan = { org: 'org_a', startMs: Date.UTC(2026, 0, 1), spanMs: 40 * 86_400_000, from: 0, spans: 180 };

  it('break no check, and are numbered by organization and time within their segments', async () => {
    await runSql(BENCH_TEXTS_DDL);
    const rows = Array.from({ length: 1000 }, (_, i) => {
      const [prompt, response] = [SENTENCES[i % SENTENCES.length] ?? '', `answer ${i}`];
      return JSON.stringify({ i, prompt, response, ...documentTerms(prompt, response) });
    });
    await runSql(`INSERT INTO bench_texts FORMAT JSONEachRow\n${rows.join('\n')}`);
    const segments = [
      { segment: 1, from: 0, count: 108, firstText: 0 },
      { segment: 2, from: 108, count: 72, firstText: 108 },
      largeTexts(3, 1),
    ];
    for (const segment of segments) for (const sql of [textsSql, postingsSql]) await runSql(sql(plan, segment));
    expect(await breaches()).toEqual([]);
    expect(
      await runSql(
        'SELECT bitShiftRight(doc, 16) AS segment, count(), min(bitAnd(doc, 65535)), max(bitAnd(doc, 65535)) FROM span_texts GROUP BY segment ORDER BY segment FORMAT TSV',
      ),
    ).toBe(['1\t108\t0\t107', '2\t72\t0\t71', '3\t1000\t0\t999'].join('\n'));
    const ordered = 'groupArray((bitShiftRight(doc, 16), org_id, started_at))';
    expect(
      await runSql(
        `SELECT ${ordered} = arraySort(${ordered}) FROM (SELECT doc, org_id, started_at FROM span_texts ORDER BY doc)`,
      ),
    ).toBe('1');
  });
});
