// Patterns of organizations: which are accepted, and that none takes longer than a linear engine
// does.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileLinear, PATTERN_LENGTH_MAX, PatternError } from '../../../pipeline/domain/patterns/linear_regex.ts';

describe('a linear pattern', () => {
  it('a linear pattern finds what it describes', () => {
    expect(compileLinear('b+').test('aabba')).toBe(true);
    expect(compileLinear('^b').test('ab')).toBe(false);
    expect(compileLinear('HELLO', ['i']).test('say hello')).toBe(true);
    expect(compileLinear('^b$', ['m']).test('a\nb\nc')).toBe(true);
    expect(compileLinear('a.b', ['s']).test('a\nb')).toBe(true);
    expect(compileLinear('(?i)\\bstraße\\b').test('Die STRASSE, die Straße.')).toBe(true);
  });

  it('a linear pattern gives its matches with their positions, and replaces them', () => {
    const digits = compileLinear('\\d+');
    expect([...digits.matches('a1b22😀333')]).toEqual([
      { start: 1, end: 2, text: '1' },
      { start: 3, end: 5, text: '22' },
      { start: 7, end: 10, text: '333' },
    ]);
    expect(digits.replace('a1b22c', ({ text }) => `<${text}>`)).toBe('a<1>b<22>c');
    expect(digits.replace('a1b22c', () => '#', 1)).toBe('a#b22c');
    expect(digits.replace('none', () => '#')).toBe('none');
    expect([...compileLinear('x*').matches('axxb')]).toEqual([{ start: 1, end: 3, text: 'xx' }]);
  });

  it.each([
    ['an open bracket', '['],
    ['look-ahead', '(?=a)'],
    ['look-behind', '(?<=a)b'],
    ['a back-reference', '(a)\\1'],
    ['repetitions that multiply', '(?:(?:a{30}){30}){30}'],
    ['a program that is too large', '(?:[ab]c){900}'],
    ['a text that is too long', 'a'.repeat(PATTERN_LENGTH_MAX + 1)],
  ])('a linear pattern is rejected in plain words: %s', (_what, pattern) => {
    expect(() => compileLinear(pattern)).toThrow(PatternError);
  });

  it.each(['(a+)+$', '(a|a)*b$', '(a|aa)+$', '(.*)*x', '^(([a-z])+.)+[A-Z]([a-z])+$', '(?:a?){100}a{100}b'])(
    'a linear pattern finishes with a megabyte: %s',
    (pattern) => {
      expect(compileLinear(pattern).test(`${'a'.repeat(1_000_000)}!`)).toBe(false);
    },
  );

  it("a linear pattern agrees with the language's patterns where both mean the same", () => {
    const piece = fc.constantFrom('a', 'b', '[ab]', 'a*', 'b?', 'a|b', '(?:ab)+', '^', '$', '.');
    fc.assert(
      fc.property(
        fc.array(piece, { minLength: 1, maxLength: 6 }),
        fc.stringMatching(/^[ab]{0,12}$/),
        (pieces, text) => {
          const pattern = pieces.join('');
          expect(compileLinear(pattern).test(text)).toBe(new RegExp(pattern).test(text));
        },
      ),
    );
  });
});
