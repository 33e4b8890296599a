// What must be true of search when the load is over: the words of a sample of texts are those of
// their prompts and responses, and the index finds each document of a word once.
import { documentTerms } from '../../pipeline/domain/text/text_terms.ts';
import type { RunSql } from '../bench/store.ts';
import type { Check } from './checks.ts';

const SAMPLED_TEXTS = 5000;
const SAMPLED_WORDS = 40;

interface SampledText {
  prompt: string;
  response: string;
  words: string;
  dl: number;
}

const checkOf = (what: string, expected: string, found: string): Check => ({
  what,
  expected,
  found,
  breach: expected !== found,
});

/** Compares the texts of an organization with what search has of them. */
export async function searchChecks(runSql: RunSql, where: string): Promise<Check[]> {
  const lines = await runSql(
    `SELECT prompt, response, words, dl FROM span_texts WHERE ${where} ORDER BY sipHash64(span_id) LIMIT ${SAMPLED_TEXTS} FORMAT JSONEachRow`,
  );
  const texts = lines
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as SampledText);
  const wrong = texts.filter(({ prompt, response, words, dl }) => {
    const terms = documentTerms(prompt, response);
    return terms.words !== words || terms.dl !== dl;
  });
  const words = [...new Set(texts.flatMap((text) => text.words.split(' ')))].filter((word) => word !== '');
  const stride = Math.max(1, Math.floor(words.length / SAMPLED_WORDS));
  const sampled = words.filter((_, index) => index % stride === 0).slice(0, SAMPLED_WORDS);
  const what = 'texts whose words are not those of their prompt and response';
  return [checkOf(what, '0', String(wrong.length)), ...(await indexCheck(runSql, where, sampled))];
}

/** Compares the documents that the index finds with those that have the words. */
async function indexCheck(runSql: RunSql, where: string, words: readonly string[]): Promise<Check[]> {
  if (words.length === 0) return [];
  const counts = (has: (word: string) => string): string => words.map((word) => `countIf(${has(word)})`).join(', ');
  const asked = (word: string): string => `hasAllTokens(words, ['${word}'])`;
  const any = words.map(asked).join(' OR ');
  const indexed = await runSql(`SELECT [${counts(asked)}] FROM span_texts WHERE ${where} AND (${any})`);
  const written = await runSql(
    `SELECT [${counts((word) => `has(parts, '${word}')`)}] FROM (SELECT splitByChar(' ', words) AS parts FROM span_texts WHERE ${where})`,
  );
  return [checkOf(`documents that search finds by ${words.length} words`, written, indexed)];
}
