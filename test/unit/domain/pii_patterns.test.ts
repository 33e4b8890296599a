// Own patterns of an organization: which are accepted, what they find, and the prefix by which a text is searched for them.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { compileLinear } from '../../../pipeline/domain/patterns/linear_regex.ts';
import { checkOwnPatterns, UnusablePattern } from '../../../pipeline/domain/pii/custom.ts';
import { beginningOf } from '../../../pipeline/domain/pii/prefix.ts';
import { shown } from './redacting.ts';

const finds = (pattern: string, text: string): string => shown(text, { kinds: [], custom: [{ label: 'X', pattern }] });

it.each(['(', '(?=a)b', '(a)\\1', 'a*', 'x{100000}', '^'])(
  'an own pattern that matches the empty text or is not supported is refused: %s',
  (pattern) => {
    expect(() => {
      checkOwnPatterns([pattern]);
    }).toThrow(UnusablePattern);
  },
);

it.each([
  ['EMP-\\d{6}', 'a EMP-123456 b', 'a [X] b'],
  ['\\b[A-Z]{2}\\d{2}[A-Z0-9]{11,30}\\b', 'IBAN DE89370400440532013000.', 'IBAN [X].'],
  ['(?i)secret-[a-z]+', 'SECRET-abc secret-Def', '[X] [X]'],
  ['^a', 'aa', '[X]a'],
  ['[^ ]+@corp', 'me@corp', '[X]'],
  ['ſecret', 'ſecret', '[X]'],
  ['(?i)kelvin', '\u212aelvin', '[X]'],
  ['x?yz{2,}', 'yzzz', '[X]'],
  ['[a\\-c]-\\d', '--1 a-2', '[X] [X]'],
])('an own pattern finds what it matches: %s', (pattern, text, expected) => {
  expect(finds(pattern, text)).toBe(expected);
});

it('a match of an own pattern is found anywhere in a long text, in its whole length', () => {
  for (const lead of [0, 1, 1000, 1023, 1024, 1500, 2047, 2048, 5000]) {
    expect(finds('<a+>', `${'-'.repeat(lead)}<${'a'.repeat(900)}>${'-'.repeat(3000)}`)).toBe(
      `${'-'.repeat(lead)}[X]${'-'.repeat(3000)}`,
    );
  }
});

const part = fc.constantFrom(
  'a',
  'B',
  '7',
  '-',
  '\\d',
  '\\w',
  '\\s',
  '\\b',
  '\\.',
  '[a-c]',
  '[^a]',
  '[A-Z0-9_]',
  '[\\d-]',
  '(?:ab)',
  '.',
  '^',
  'é',
  'ſ',
  'K',
);
const repeat = fc.constantFrom('', '', '', '?', '+', '*', '{2}', '{1,3}', '{2,}', '+?');
const pattern = fc
  .tuple(fc.constantFrom('', '(?i)'), fc.array(fc.tuple(part, repeat), { minLength: 1, maxLength: 5 }))
  .map(
    ([flags, parts]) =>
      flags + parts.map(([atom, times]) => (atom === '\\b' || atom === '^' ? atom : atom + times)).join(''),
  );
const text = fc.string({
  unit: fc.constantFrom('a', 'A', 'b', 'B', 'c', '7', '1', '-', '.', ' ', '_', '\n', 'é', 's', 'ſ', 'k', 'K', '\u212a'),
  maxLength: 12,
});

it('the prefix of a pattern matches in every text that the pattern matches', () => {
  fc.assert(
    fc.property(pattern, text, (written, read) => {
      const beginning = beginningOf(written);
      if (beginning === null || !compileLinear(written).test(read)) return;
      expect([written, read, beginning.test(read), read.length >= beginning.length]).toEqual([
        written,
        read,
        true,
        true,
      ]);
    }),
    { numRuns: 5000 },
  );
});

it.each([
  ['EMP-\\d{6}', 10],
  ['\\b[A-Z]{2}\\d{2}[A-Z0-9]{11,30}\\b', 15],
  ['(?i)secret[ -]?key', 9],
  ['ab+c', 2],
])('a prefix of known length is derived from %s', (written, length) => {
  expect(beginningOf(written)?.length).toBe(length);
});

it.each(['a|b', '.*secret', '(ab)', '\\d', '[[:alpha:]]x', '\\pLab'])('no prefix is derived from %s', (written) => {
  expect(beginningOf(written)).toBeNull();
});
