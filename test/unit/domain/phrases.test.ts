import { describe, expect, it } from 'vitest';
import { hasPhrases } from '../../../pipeline/domain/text/phrases.ts';
import { parseSearch } from '../../../pipeline/domain/text/search_text.ts';

const chat = (...contents: string[]): string => JSON.stringify(contents.map((content) => ({ role: 'user', content })));
const quoted = (...texts: string[]): string[] => parseSearch(texts.map((text) => `"${text}"`).join(' '))?.phrases ?? [];

describe('hasPhrases', () => {
  it.each<[string, string, string[], boolean]>([
    ['the fast car', '', ['fast car'], true],
    ['the fast car', '', ['the fast'], true],
    ['the fast car', '', ['car fast'], false],
    ['the fast red car', '', ['fast car'], false],
    ['breakfast cars', '', ['fast car'], false],
    ['FAST,\n  Cár!', '', ['fast car'], true],
    ['the fast', 'car', ['fast car'], true],
    ['car', 'the fast', ['fast car'], false],
    ['the fast car', 'is red', ['fast car', 'is red', 'car is'], true],
    ['the fast car', 'is red', ['fast car', 'red is'], false],
    [chat('my reservation', 'in Lisbon'), 'It is', ['reservation in lisbon it is'], true],
    [chat('my reservation'), '', ['user my'], false],
    ['die Größe der STRASSE', '', ['größe der straße'], true],
    ['私は東京都に住んでいます', '', ['東京都に住'], true],
    ['東京と京都', '', ['東京都'], false],
    ['ขอบคุณครับ', '', ['ขอบคุณ'], true],
    ['السلام عَلَيْكُم', '', ['السلام عليكم'], true],
    ['iPhone用ケース😀красный', '', ['ケース красный'], true],
    ['', '', ['fast car'], false],
    ['anything', '', [], true],
  ])('of %j and %j with %j is %s', (prompt, response, phrases, expected) => {
    expect(hasPhrases(prompt, response, quoted(...phrases))).toBe(expected);
  });
});
