import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import '../../support/properties.ts';
import { parseFind } from '../../../pipeline/domain/text/find_text.ts';
import { snippetOf } from '../../../pipeline/domain/text/snippets.ts';

const marked = (text: string, find: string, isJson = false): string[] => {
  const { snippet, marks } = snippetOf(text, parseFind(find)?.terms ?? [], isJson);
  return marks.map(([start, end]) => snippet.slice(start, end));
};

describe('snippetOf', () => {
  it.each([
    ['A Refund, please', 'refund', ['Refund']],
    ['a refund or a sofa', 'sofa refund', ['refund', 'sofa']],
    ['refunded refund_s x-refund', 'refund', ['refund', 'refund']],
    ['the  red\nsofa and a red bed', '"red sofa"', ['red sofa']],
    ['Größe größe', 'GRÖSSE größe', ['Größe', 'größe']],
    ['nothing here', 'refund', []],
  ])('marks in %j the matches of %j', (text, find, expected) => {
    expect(marked(text, find)).toEqual(expected);
  });

  it('replaces the escapes of a JSON text by their characters', () => {
    const text = String.raw`[{"content":"line\nrefund \"now\" \u00e9t\u00e9"}]`;
    expect(snippetOf(text, [['refund']], true).snippet).toBe('[{"content":"line refund "now" été"}]');
    expect(marked(text, 'refund', true)).toEqual(['refund']);
  });

  it('is one bounded line whose marks are whole matches', () => {
    const word = fc.constantFrom('refund', 'a', 'sofa', '東京', '!', '\n', '…', '😀');
    fc.assert(
      fc.property(fc.array(word, { maxLength: 300 }), (words) => {
        const { snippet, marks } = snippetOf(words.join(' '), [['refund'], ['sofa']]);
        expect(snippet).not.toContain('\n');
        expect(snippet.length).toBeLessThan(400);
        for (const [start, end] of marks) expect(['refund', 'sofa']).toContain(snippet.slice(start, end));
        const found = words.includes('refund') || words.includes('sofa');
        expect(marks.length > 0).toBe(found);
      }),
    );
  });
});

describe('parseFind', () => {
  it('returns null for a text without a word', () => {
    expect(parseFind('"…" -')).toBeNull();
  });
});
