import { describe, expect, it } from 'vitest';
import { markedTerms, parseSearch } from '../../../pipeline/domain/text/search_text.ts';

describe('parseSearch', () => {
  it.each([
    ['Red "fast CAR" x "one"', ['red', 'fast', 'car', 'x', 'one'], ['fast car']],
    ['a "b c', ['a', 'b', 'c'], []],
    ['"Straße, (nach) Köln"', ['strasse', 'nach', 'koln'], ['strasse nach koln']],
    ['"東京都"', ['東京', '京都'], ['東京 京都']],
    ['"x y" "X, Y"', ['x', 'y'], ['x y']],
  ])('returns the words and phrases of %j', (text, words, phrases) => {
    expect(parseSearch(text)).toEqual({ words, phrases });
  });

  it.each(['', ' ', '"!" ?', '😀', '\u0301', '"…" -'])('returns null for %j, which has no word', (text) => {
    expect(parseSearch(text)).toBeNull();
  });
});

describe('markedTerms', () => {
  it('returns phrases, and the words that are in none', () => {
    const search = parseSearch('red "fast car" car');
    expect(search === null ? [] : markedTerms(search)).toEqual(['fast car', 'red']);
  });
});
