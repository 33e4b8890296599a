// The words of texts: the fast scan agrees with the plain definition for every alphabet.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { plainText } from '../../../pipeline/domain/text/plain_text.ts';
import { documentTerms, type DocumentTerms, wordsOf } from '../../../pipeline/domain/text/text_terms.ts';
import { splitWords, wordHash, wordList } from '../../../pipeline/domain/text/words.ts';
import { definedWords } from '../../support/defined_words.ts';

/** FNV-1a 32 over UTF-16 code units in exact arithmetic. */
function plainHash(word: string): number {
  let hash = 0x811c9dc5n;
  for (let i = 0; i < word.length; i++) hash = ((hash ^ BigInt(word.charCodeAt(i))) * 0x01000193n) & 0xffff_ffffn;
  return Number(hash);
}

/** The definition, word by word. */
function plainTerms(...texts: string[]): DocumentTerms {
  const words = texts.flatMap((text) => definedWords(plainText(text)));
  return { words: words.join(' '), dl: words.length };
}

function agrees(prompt: string, response: string): void {
  expect(documentTerms(prompt, response)).toEqual(plainTerms(prompt, response));
}

const word = fc.constantFrom(
  'the',
  'The',
  'THE',
  'and',
  'loop',
  'Loop',
  'x1',
  '42',
  'café',
  'Ärger',
  'naïve',
  'ΣΑΣ',
  'данные',
  '数据',
  '𝒳',
  'İ',
  '\u212a',
  'don',
  't',
);
const gap = fc.constantFrom(
  ' ',
  ', ',
  '\n',
  '_',
  '-',
  '’',
  '—',
  '“',
  '😀',
  '\u0301',
  '\ud800',
  '\u00a0',
  '',
  '.',
  '\u0000',
);
const text = fc.array(fc.tuple(word, gap), { maxLength: 60 }).map((pairs) => pairs.flat().join(''));

describe('documentTerms', () => {
  it('documentTerms agrees with the definition on words of many alphabets', () => {
    fc.assert(fc.property(text, text, agrees), { numRuns: 500 });
  });

  it('documentTerms agrees with the definition on any text', () => {
    const any = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 120 }),
      fc.string({ unit: 'grapheme', maxLength: 120 }),
      fc.string({ maxLength: 120 }),
    );
    fc.assert(fc.property(any, any, agrees), { numRuns: 200 });
  });

  it('documentTerms agrees with the definition on ASCII texts, and on those with one other character anywhere', () => {
    const ascii = fc.string({ unit: 'binary-ascii', maxLength: 120 });
    fc.assert(fc.property(ascii, ascii, agrees), { numRuns: 200 });
    const other = fc.constantFrom('é', '\u212a', '日', '😀', '\ud800', '\u0080');
    fc.assert(
      fc.property(ascii, other, ascii, ascii, (start, one, end, response) => {
        agrees(`${start}${one}${end}`, response);
        agrees(response, `${start}${one}${end}`);
      }),
      { numRuns: 200 },
    );
  });

  it('documentTerms agrees with the definition on large texts, and on small ones after them', () => {
    const distinct = Array.from({ length: 50_000 }, (_, i) => `w${i % 40_000}`).join(' ');
    expect(documentTerms(distinct, distinct)).toEqual(plainTerms(distinct, distinct));
    const single = 'a'.repeat(300_000);
    expect(documentTerms(single, single)).toEqual(plainTerms(single, single));
    expect(documentTerms('a b', 'b')).toEqual(plainTerms('a b', 'b'));
  });

  it('documentTerms counts prompt and response as one document without joining their words', () => {
    expect(documentTerms('alpha be', 'be Alpha')).toEqual({ dl: 4, words: 'alpha be be alpha' });
    expect(documentTerms('al', 'pha')).toEqual({ dl: 2, words: 'al pha' });
  });

  it('documentTerms decodes a list of messages, and neither its keys nor its roles are words', () => {
    const messages = [
      { role: 'system', content: 'Be kind' },
      { role: 'user', content: [{ type: 'text', text: 'my\nreservation' }] },
    ];
    expect(documentTerms(JSON.stringify(messages), '{"answer":"confirmed"}').words).toBe(
      'be kind my reservation confirmed',
    );
  });

  it('documentTerms of empty texts is empty', () => {
    expect(documentTerms('', ' ,.')).toEqual({ words: '', dl: 0 });
  });
});

describe('wordsOf', () => {
  it('wordsOf returns the words of a query as documentTerms stores them, repeats included', () => {
    expect(wordsOf('The LOOP, the café!')).toEqual(['the', 'loop', 'the', 'cafe']);
    expect(wordsOf(' ?! ')).toEqual([]);
  });
});

describe('wordHash', () => {
  it('wordHash of a word is the hash that the splitter gives it', () => {
    fc.assert(
      fc.property(text, (words) => {
        const list = wordList(false);
        splitWords(words, list);
        const hashes = [...list.hashes.subarray(0, list.count)].map((hash) => hash >>> 0);
        expect(hashes).toEqual(wordsOf(words).map(plainHash));
        expect(hashes).toEqual(wordsOf(words).map(wordHash));
      }),
    );
  });
});
