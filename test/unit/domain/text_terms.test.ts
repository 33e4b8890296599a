// The words of texts: the fast scan agrees with the plain definition for every alphabet.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { documentTerms, queryWords, wordHash, type DocumentTerms } from '../../../pipeline/domain/text/text_terms.ts';
import { isStopHash } from '../../../pipeline/domain/text/stop_words.ts';

/** FNV-1a 32 over UTF-16 code units in exact arithmetic. */
function plainHash(word: string): number {
  let hash = 0x811c9dc5n;
  for (let i = 0; i < word.length; i++) hash = ((hash ^ BigInt(word.charCodeAt(i))) * 0x01000193n) & 0xffff_ffffn;
  return Number(hash);
}

const foreign = (char: string | undefined) => char !== undefined && char.charCodeAt(0) > 127;

/** The definition, word by word. */
function plainTerms(...texts: string[]): DocumentTerms {
  const seen = new Set<string>();
  const extra = new Set<string>();
  const terms: DocumentTerms = { dl: 0, reps: [], stop_reps: [], extra_words: '' };
  for (const text of texts) {
    for (const match of text.matchAll(/[\p{L}\p{N}]+/gu)) {
      const word = match[0].toLowerCase();
      terms.dl++;
      if (seen.has(word)) (isStopHash(plainHash(word)) ? terms.stop_reps : terms.reps).push(plainHash(word));
      seen.add(word);
      const isExtra =
        match[0].split('').some(foreign) ||
        foreign(text[match.index - 1]) ||
        foreign(text[match.index + match[0].length]);
      if (isExtra) extra.add(word);
    }
  }
  terms.reps.sort((a, b) => a - b);
  terms.stop_reps.sort((a, b) => a - b);
  terms.extra_words = [...extra].join(' ');
  return terms;
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

  it('documentTerms agrees with the definition on large texts, and on small ones after them', () => {
    const distinct = Array.from({ length: 50_000 }, (_, i) => `w${i % 40_000}`).join(' ');
    expect(documentTerms(distinct, distinct)).toEqual(plainTerms(distinct, distinct));
    const single = 'a'.repeat(300_000);
    expect(documentTerms(single, single)).toEqual(plainTerms(single, single));
    expect(documentTerms('a b', 'b')).toEqual(plainTerms('a b', 'b'));
  });

  it('documentTerms counts prompt and response as one document without joining their words', () => {
    expect(documentTerms('alpha be', 'be Alpha')).toEqual({
      dl: 4,
      reps: [wordHash('alpha')],
      stop_reps: [wordHash('be')],
      extra_words: '',
    });
    expect(documentTerms('al', 'pha')).toMatchObject({ dl: 2, reps: [] });
  });

  it('documentTerms lists the words that the text index would miss, as it counts foreign characters as letters', () => {
    expect(documentTerms('plain café—latte', 'don’t end').extra_words).toBe('café latte don t');
  });

  it('documentTerms of empty texts is empty', () => {
    expect(documentTerms('', ' ,.')).toEqual({ dl: 0, reps: [], stop_reps: [], extra_words: '' });
  });
});

describe('queryWords', () => {
  it('queryWords gives each distinct word once, lower-cased, with its hash and whether it is a stop word', () => {
    expect(queryWords('The LOOP, the café!')).toEqual([
      { word: 'the', hash: plainHash('the'), stop: true },
      { word: 'loop', hash: plainHash('loop'), stop: false },
      { word: 'café', hash: plainHash('café'), stop: false },
    ]);
    expect(queryWords(' ?! ')).toEqual([]);
  });

  it('queryWords hashes words as documentTerms does', () => {
    fc.assert(
      fc.property(text, (query) => {
        const doubled = documentTerms(query, query);
        for (const { hash, stop } of queryWords(query)) expect(stop ? doubled.stop_reps : doubled.reps).toContain(hash);
      }),
    );
  });
});

describe('words that a caller has chosen', () => {
  it('words chosen to collide without a salt take no longer than others', () => {
    // Words for a thirty-second of the slots: linear probing took time quadratic in their number.
    const mask = 2 ** 19 - 1;
    const words: string[] = [];
    for (let n = 0; words.length < 200_000; n++) {
      const word = n.toString(36);
      const hash = wordHash(word) | 0;
      if (((hash ^ (hash >>> 15)) & mask) < 2 ** 14) words.push(word);
    }
    expect(documentTerms(words.join(' '), '').dl).toBe(words.length);
  }, 60_000);
});
