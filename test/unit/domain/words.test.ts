// The splitter: every word of the contract, and agreement with the definition on any text.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import '../../support/properties.ts';
import { wordsOf } from '../../../pipeline/domain/text/text_terms.ts';
import { splitWords, wordList } from '../../../pipeline/domain/text/words.ts';
import { definedWords } from '../../support/defined_words.ts';

describe('wordsOf', () => {
  it.each([
    ['Straße GROẞ Müller-Lüdenscheidt', 'strasse gross muller ludenscheidt'],
    ['Ça va, e\u0301te\u0301 naïve', 'ca va ete naive'],
    ['ﬁne Ｆｕｌｌ　ｗｉｄｔｈ １２３', 'fine full width 123'],
    ['東京都に住む iPhone用 ラーメン 猫', '東京 京都 都に に住 住む iphone 用 ラー ーメ メン 猫'],
    ['ｶﾞｰﾄﾞ 時々 𠮷野家', 'ガー ード 時々 𠮷野 野家'],
    ['한국어를 배우다', '한국 국어 어를 배우 우다'],
    ['ไทย ดี', 'ไท ทย ดี'],
    ['مُحَمَّد أحمد שָׁלוֹם', 'محمد احمد שלום'],
    ['Привет ЁЖИК ΟΔΟΣ οδός', 'привет ежик οδοσ οδοσ'],
    ['नमस्ते दुनिया', 'नमस्ते दुनिया'],
    ['😀hi😀 ❤️ 1️⃣ x²', 'hi 1 x2'],
    ['don’t snake_case a.b@c.de 3.14', 'don t snake case a b c de 3 14'],
    ['İstanbul Foo™ 25℃', 'istanbul foo 25'],
    ['\ud800x\udc00 y\u0000z', 'x y z'],
  ])('splits %j', (text, words) => {
    expect(wordsOf(text).join(' ')).toBe(words.normalize('NFC'));
  });

  const hostile = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 200 }),
    fc.string({ unit: 'grapheme', maxLength: 200 }),
    fc
      .array(
        fc.constantFrom(
          'a',
          'ß',
          'Σ',
          'か',
          '\u3099',
          '\u0301',
          '\u0327',
          '한',
          '\u1100',
          '\u1161',
          '\u11a8',
          'ﾞ',
          'ﷺ',
          'ﾊ',
          '½',
          'ǅ',
          '\ud83d',
          '\u200d',
          'क',
          '\u093c',
          '\u094d',
          'ก',
          '\u0e33',
          '々',
          '漢',
          ' ',
        ),
        { maxLength: 60 },
      )
      .map((parts) => parts.join('')),
  );

  it('agrees with the definition on any text', () => {
    fc.assert(
      fc.property(hostile, (text) => {
        expect(wordsOf(text)).toEqual(definedWords(text));
      }),
      { numRuns: 2000 },
    );
  });

  it('finds each word of a text in the query that is the word', () => {
    fc.assert(
      fc.property(hostile, (text) => {
        for (const word of wordsOf(text)) expect(wordsOf(word)).toEqual([word]);
      }),
      { numRuns: 500 },
    );
  });

  it('places every word inside its text, in order', () => {
    fc.assert(
      fc.property(hostile, (text) => {
        const list = wordList(true);
        splitWords(text, list);
        for (let n = 0; n < list.count; n++) {
          const [start = -1, end = -1] = [list.places?.starts[n], list.places?.ends[n]];
          expect(start).toBeGreaterThanOrEqual(n === 0 ? 0 : (list.places?.starts[n - 1] ?? 0));
          expect(end).toBeGreaterThan(start);
          expect(end).toBeLessThanOrEqual(text.length);
        }
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    ['marks in an order that normalization must change', 'a' + '\u0301\u0327'.repeat(500_000), 1],
    ['one word', 'x'.repeat(2_000_000), 1],
    ['one run of characters that are written without spaces', '漢'.repeat(1_000_000), 999_999],
    ['characters outside the first plane', '😀a'.repeat(500_000), 500_000],
  ])('splits a million characters without a long wait: %s', (_name, text, count) => {
    expect(wordsOf(text)).toHaveLength(count);
  });

  it('bounds the words of characters that stand for many', () => {
    const list = wordList(false);
    splitWords('\ufdfa '.repeat(200_000), list);
    expect(list.length).toBeLessThan(400_000 * 4 + 2048);
  });
});
