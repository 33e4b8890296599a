// The words of texts: the fast scan agrees with the plain definition for every alphabet.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { plainText } from '../../../pipeline/domain/text/plain_text.ts';
import { documentTerms, queryWords, wordHash, type DocumentTerms } from '../../../pipeline/domain/text/text_terms.ts';
import { definedWords } from '../../support/defined_words.ts';
import { isStopHash } from '../../../pipeline/domain/text/stop_words.ts';

/** FNV-1a 32 over UTF-16 code units in exact arithmetic. */
function plainHash(word: string): number {
  let hash = 0x811c9dc5n;
  for (let i = 0; i < word.length; i++) hash = ((hash ^ BigInt(word.charCodeAt(i))) * 0x01000193n) & 0xffff_ffffn;
  return Number(hash);
}

/** The definition, word by word. */
function plainTerms(...texts: string[]): DocumentTerms {
  const seen = new Set<string>();
  const terms: DocumentTerms = { words: '', dl: 0, reps: [], stop_reps: [] };
  const words = texts.flatMap((text) => definedWords(plainText(text)));
  for (const word of words) {
    if (seen.has(word)) (isStopHash(plainHash(word)) ? terms.stop_reps : terms.reps).push(plainHash(word));
    seen.add(word);
  }
  terms.words = words.join(' ');
  terms.dl = words.length;
  terms.reps.sort((a, b) => a - b);
  terms.stop_reps.sort((a, b) => a - b);
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
      words: 'alpha be be alpha',
    });
    expect(documentTerms('al', 'pha')).toMatchObject({ dl: 2, reps: [] });
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
    expect(documentTerms('', ' ,.')).toEqual({ words: '', dl: 0, reps: [], stop_reps: [] });
  });
});

describe('queryWords', () => {
  it('queryWords gives each distinct word once, as the index has it, with its hash and whether it is a stop word', () => {
    expect(queryWords('The LOOP, the café!')).toEqual([
      { word: 'the', hash: plainHash('the'), stop: true },
      { word: 'loop', hash: plainHash('loop'), stop: false },
      { word: 'cafe', hash: plainHash('cafe'), stop: false },
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
