// The syntax errors that the JSON editor shows, with their place.
import { EditorState } from '@codemirror/state';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jsonProblem } from '../../../api/portal/web/editor/json_problem.ts';
import { jsonTokens } from '../../../api/portal/web/editor/json_tokens.ts';

const problemOf = (doc: string) => jsonProblem(EditorState.create({ doc }));

describe('the JSON editor', () => {
  it.each([
    ['{"a": 1,}', 'Line 1, column 9'],
    ['{\n  "a": nope\n}', 'Line 2, column 8'],
    ['[1, 2', 'Line 1, column 6'],
    ['{"a" 1}', 'Line 1, column 6'],
  ])('says where %j is wrong', (text, place) => {
    expect(problemOf(text)?.text).toContain(place);
  });

  it('says that a text ends too early', () => {
    expect(problemOf('{"a": ')?.text).toContain('the JSON ends too early.');
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
    expect(problemOf(' \n')).toBeNull();
  });

  it('finds an error exactly where JSON.parse does, within the text', () => {
    const piece = fc.constantFrom('{', '}', '[', ']', '"a"', ':', ',', '1', 'true', 'x', '\n', ' ', '"');
    fc.assert(
      fc.property(
        fc.oneof(
          fc.json(),
          fc.array(piece, { maxLength: 12 }).map((parts) => parts.join('')),
        ),
        (text) => {
          const parses = ((): boolean => {
            try {
              JSON.parse(text);
              return true;
            } catch {
              return text.trim() === '';
            }
          })();
          const problem = problemOf(text);
          expect(problem === null).toBe(parses);
          if (problem === null) return;
          expect(problem.from).toBeGreaterThanOrEqual(0);
          expect(problem.to).toBeLessThanOrEqual(EditorState.create({ doc: text }).doc.length);
          expect(problem.to).toBeGreaterThan(problem.from);
        },
      ),
    );
  });
});
