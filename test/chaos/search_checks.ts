// Checks search when the load is over: every text has a document number of its own, and
// the postings have each word of the texts once, with the right count. Numbers and sums are compared
// for all texts, words for a sample.
import { documentTerms } from '../../pipeline/domain/text/text_terms.ts';
import type { RunSql } from '../bench/store.ts';
import type { Check } from './checks.ts';

const SAMPLED_TEXTS = 5000;
/** Texts of the sample whose words are compared with the postings, one by one. */
const COMPARED_TEXTS = 1000;
/** Words of one statement that hashes them. */
const HASHED_WORDS = 5000;
/** The statements list documents and words. */
const LONG = { max_query_size: '16777216' };

/** Each posting of span_words, with its document. */
const POSTINGS =
  '(SELECT segment * 65536 + place AS doc, word, times FROM span_words ARRAY JOIN places AS place, counts AS times)';

interface SampledText {
  doc: string;
  prompt: string;
  response: string;
  /** Words that are stored beside the text; empty, because postings have them. */
  words: string;
  dl: number;
}

const equal = (what: string, expected: string, found: string): Check => ({
  what,
  expected,
  found,
  breach: expected !== found,
});
const none = (what: string, rows: readonly string[]): Check => ({ ...equal(what, '0', String(rows.length)), rows });

const linesOf = (answer: string): string[] => answer.split('\n').filter((line) => line !== '');

/** Compares the texts of an organization with what search has of them. Call when all texts are moved. */
export async function searchChecks(runSql: RunSql, where: string): Promise<Check[]> {
  const lines = await runSql(
    `SELECT toString(doc) AS doc, prompt, response, words, dl FROM span_texts WHERE ${where} ORDER BY sipHash64(span_id) LIMIT ${SAMPLED_TEXTS} FORMAT JSONEachRow`,
  );
  const texts = linesOf(lines).map((line) => JSON.parse(line) as SampledText);
  const wrong = texts.filter(
    ({ prompt, response, words, dl }) => words !== '' || documentTerms(prompt, response).dl !== dl,
  );
  return [
    none(
      'texts that do not have the number of their words, or store words',
      wrong.map(({ doc }) => `document ${doc}`),
    ),
    ...(await numberChecks(runSql)),
    ...(await sumChecks(runSql, where)),
    ...(await wordChecks(runSql, texts.slice(0, COMPARED_TEXTS))),
  ];
}

async function numberChecks(runSql: RunSql): Promise<Check[]> {
  const [without = '', twice = ''] = (
    await runSql(
      'SELECT countIf(doc = 0 AND dl > 0), countIf(doc != 0) - uniqExactIf(doc, doc != 0) FROM span_texts FORMAT TSV',
    )
  ).split('\t');
  return [
    equal('texts with words and without a document number', '0', without),
    equal('document numbers given twice', '0', twice),
  ];
}

/** Postings of documents that do not exist are none of any text: a move that ended half-way leaves them. */
async function sumChecks(runSql: RunSql, where: string): Promise<Check[]> {
  const words = await runSql(`SELECT sum(dl) FROM span_texts WHERE ${where}`);
  const found = await runSql(
    `SELECT sum(times) FROM ${POSTINGS} WHERE doc IN (SELECT doc FROM span_texts WHERE ${where})`,
  );
  return [equal('words of all texts, in postings', words, found)];
}

/** Compares the words of texts with their postings, in both directions. */
async function wordChecks(runSql: RunSql, texts: readonly SampledText[]): Promise<Check[]> {
  if (texts.length === 0) return [];
  const counted = texts.map(({ doc, prompt, response }) => ({ doc, counts: wordCounts(prompt, response) }));
  const hashes = await hashesOf(runSql, new Set(counted.flatMap(({ counts }) => [...counts.keys()])));
  const written = new Set(
    counted.flatMap(({ doc, counts }) =>
      [...counts].map(([word, times]) => `${doc}\t${hashes.get(word) ?? word}\t${times}`),
    ),
  );
  const found = linesOf(
    await runSql(
      `SELECT doc, word, times FROM ${POSTINGS} WHERE doc IN (${texts.map(({ doc }) => doc).join(', ')}) FORMAT TSV`,
      LONG,
    ),
  );
  const distinct = new Set(found);
  const asRow = (line: string): string => {
    const [doc = '', word = '', times = ''] = line.split('\t');
    return `document ${doc}, hash of the word ${word}, ${times} times`;
  };
  return [
    none('words of texts without their posting', [...written].filter((line) => !distinct.has(line)).map(asRow)),
    none('postings that are of no word of their text', [...distinct].filter((line) => !written.has(line)).map(asRow)),
    equal('postings given twice', '0', String(found.length - distinct.size)),
  ];
}

function wordCounts(prompt: string, response: string): Map<string, number> {
  const { words } = documentTerms(prompt, response);
  const counts = new Map<string, number>();
  for (const word of words === '' ? [] : words.split(' ')) counts.set(word, (counts.get(word) ?? 0) + 1);
  return counts;
}

/** Returns the hash by which postings know each word. */
async function hashesOf(runSql: RunSql, words: ReadonlySet<string>): Promise<Map<string, string>> {
  const hashes = new Map<string, string>();
  const all = [...words];
  for (let first = 0; first < all.length; first += HASHED_WORDS) {
    const some = all.slice(first, first + HASHED_WORDS);
    // Words are letters, marks and digits, so nothing in them ends a literal.
    const answer = await runSql(
      `SELECT toString(cityHash64(arrayJoin(splitByChar(' ', '${some.join(' ')}')))) FORMAT TSV`,
      LONG,
    );
    linesOf(answer).forEach((hash, index) => hashes.set(some[index] ?? '', hash));
  }
  return hashes;
}
