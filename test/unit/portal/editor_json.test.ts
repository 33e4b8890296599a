// The syntax errors that the JSON editor shows, with their place, and the pieces that it colours.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jsonProblem } from '../../../api/portal/web/editor/json_problem.ts';
import { jsonPieces, lineGroups, templatePieces, withProblem } from '../../../api/portal/web/editor/marked_text.ts';
import { jsonTokens } from '../../../api/portal/web/editor/json_tokens.ts';

const piece = fc.constantFrom(
  '{',
  '}',
  '[',
  ']',
  '"a"',
  ':',
  ',',
  '1',
  'true',
  'x',
  '\n',
  ' ',
  '"',
  '{{a}}',
  '{{ b }}',
);
const pieces = fc.array(piece, { maxLength: 12 }).map((parts) => parts.join(''));

describe('the JSON editor', () => {
  it.each([
    ['{"a": 1,}', 'Line 1, column 9'],
    ['{\n  "a": nope\n}', 'Line 2, column 8'],
    ['[1, 2', 'Line 1, column 6'],
    ['{"a" 1}', 'Line 1, column 6'],
  ])('says where %j is wrong', (text, place) => {
    expect(jsonProblem(text)?.text).toContain(place);
  });

  it('says that a text ends too early', () => {
    expect(jsonProblem('{"a": ')?.text).toContain('the JSON ends too early.');
  });

  it('tells names, texts, values and marks apart, also where a text is not closed', () => {
    const kinds = (text: string) => [...jsonTokens(text)].map(({ kind, text: token }) => `${kind} ${token}`);
    expect(kinds('{"a" : [-1.5e3, "b", null]}')).toEqual([
      'mark {',
      'property "a"',
      'mark :',
      'mark [',
      'value -1.5e3',
      'mark ,',
      'string "b"',
      'mark ,',
      'value null',
      'mark ]',
      'mark }',
    ]);
    expect(kinds('"open\n1')).toEqual(['string "open', 'value 1']);
    expect(kinds(`"${'\\"'.repeat(50_000)}`)).toHaveLength(1);
  });

  it('takes a blank text for no value', () => {
    expect(jsonProblem(' \n')).toBeNull();
  });

  it('finds an error exactly where JSON.parse does, within the text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), pieces), (text) => {
        const parses = ((): boolean => {
          try {
            JSON.parse(text);
            return true;
          } catch {
            return text.trim() === '';
          }
        })();
        const problem = jsonProblem(text);
        expect(problem === null).toBe(parses);
        if (problem === null) return;
        expect(problem.from).toBeGreaterThanOrEqual(0);
        expect(problem.to).toBeLessThanOrEqual(text.length);
        expect(problem.to).toBeGreaterThan(problem.from);
      }),
    );
  });
});

describe('the coloured text of an editor', () => {
  it('has every character of the text once, in order', () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), pieces, fc.string()), fc.nat(40), fc.nat(10), (text, from, chars) => {
        const joined = (parts: readonly { text: string }[]): string => parts.map((part) => part.text).join('');
        expect(joined(jsonPieces(text))).toBe(text);
        expect(joined(templatePieces(text, new Set(['a'])))).toBe(text);
        expect(joined(withProblem(jsonPieces(text), from, from + chars))).toBe(text);
        expect(lineGroups(text, 3).flat().join('\n')).toBe(text);
      }),
    );
  });

  it('tells variables with a value from those without one', () => {
    expect(templatePieces('Hi {{a}}, {{b}}', new Set(['a']))).toEqual([
      { text: 'Hi ', look: null },
      { text: '{{a}}', look: 'variable' },
      { text: ', ', look: null },
      { text: '{{b}}', look: 'unknown' },
    ]);
    expect(templatePieces('{{b}}', null)).toEqual([{ text: '{{b}}', look: 'variable' }]);
  });

  it('underlines the characters of a syntax error, also across two pieces', () => {
    expect(withProblem(jsonPieces('[1,,2]'), 2, 4)).toEqual([
      { text: '[', look: 'mark' },
      { text: '1', look: 'value' },
      { text: ',', look: 'problem' },
      { text: ',', look: 'problem' },
      { text: '2', look: 'value' },
      { text: ']', look: 'mark' },
    ]);
    expect(withProblem(jsonPieces('12'), 0, 0)).toEqual([{ text: '12', look: 'value' }]);
  });
});
