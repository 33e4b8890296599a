import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import '../../support/properties.ts';
import { plainText } from '../../../pipeline/domain/text/plain_text.ts';
import { markedTerms, parseSearch } from '../../../pipeline/domain/text/search_text.ts';
import { snippetOf } from '../../../pipeline/domain/text/snippets.ts';
import { wordsOf } from '../../../pipeline/domain/text/text_terms.ts';

function marked(text: string, find: string): string[] {
  const search = parseSearch(find);
  const { snippet, marks } = snippetOf(text, search === null ? [] : markedTerms(search));
  return marks.map(([start, end]) => snippet.slice(start, end));
}

describe('snippetOf', () => {
  it.each([
    ['A Refund, please', 'refund', ['Refund']],
    ['a refund or a sofa', 'sofa refund', ['refund', 'sofa']],
    ['refunded refund_s x-refund', 'refund', ['refund', 'refund']],
    ['the  red\nsofa and a red bed', '"red sofa"', ['red sofa']],
    ['die rote, (alte) Couch', '"rote alte"', ['rote, (alte']],
    ['Größe große', 'GRÖSSE grosse', ['Größe', 'große']],
    ['un cafe\u0301 noir', 'CAFÉ', ['cafe\u0301']],
    ['Ｆｕｌｌ ｗｉｄｔｈ', 'full', ['Ｆｕｌｌ']],
    ['私は東京都に住む', '東京都', ['東京都']],
    ['ｶﾞｰﾄﾞを見る', 'ガード', ['ｶﾞｰﾄﾞ']],
    ['한국어를 배우다', '한국어', ['한국어']],
    ['ขอบคุณ สวัสดีครับ', 'สวัสดี', ['สวัสดี']],
    ['ذهب مُحَمَّد إلى', 'محمد', ['مُحَمَّد']],
    ['😀refund😀', 'refund', ['refund']],
    ['nothing here', 'refund', []],
  ])('marks in %j the matches of %j', (text, find, expected) => {
    expect(marked(text, find)).toEqual(expected);
  });

  it('shows the plain text of a prompt that is stored as JSON', () => {
    const prompt = JSON.stringify([{ role: 'user', content: 'line\nreservation "now" été' }]);
    const { snippet, marks } = snippetOf(plainText(prompt), ['reservation']);
    expect(snippet).toBe('line reservation "now" été');
    expect(marks).toEqual([[5, 16]]);
  });

  it('begins at the first of the wanted terms that occurs', () => {
    const text = `common ${'x '.repeat(500)}rare common ${'y '.repeat(500)}`;
    expect(snippetOf(text, ['common', 'rare'], ['absent', 'rare', 'common']).found).toEqual(['rare', 'common']);
    expect(snippetOf(text, ['common', 'rare']).found).toEqual(['common']);
  });

  it('is one bounded line whose marks are whole matches', () => {
    const word = fc.constantFrom(
      'refund',
      'a',
      'Sofa',
      '東京都',
      '!',
      '\n',
      '…',
      '😀',
      'é',
      '\u0301',
      'w'.repeat(3000),
    );
    fc.assert(
      fc.property(fc.array(word, { maxLength: 300 }), fc.constantFrom(' ', '\n\t', ', '), (words, gap) => {
        const text = words.join(gap);
        const { snippet, marks } = snippetOf(text, ['refund', 'sofa', '東京']);
        expect(snippet).not.toContain('\n');
        expect(snippet.length).toBeLessThan(2100);
        for (const [start, end] of marks)
          expect(['refund', 'sofa', '東京']).toContain(wordsOf(snippet.slice(start, end)).join(' '));
        const found = wordsOf(text).some((one) => ['refund', 'sofa', '東京'].includes(one));
        expect(marks.length > 0).toBe(found);
      }),
    );
  });
});
