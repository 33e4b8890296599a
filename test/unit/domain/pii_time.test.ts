// Redaction takes linear time: a megabyte of any text is redacted within the time of a test.
import { expect, it } from 'vitest';
import { redactor, shown } from './redacting.ts';

const MEGABYTE = 1024 * 1024;
const pieces = [
  'a',
  '1',
  '1 ',
  'a.',
  '-1',
  '+1',
  '(1) ',
  '1.',
  'f:',
  ':',
  '@',
  'a@',
  'a@a.',
  '0 ',
  '+',
  '(',
  '+1(',
  '11-11-',
  '1-',
  '1.1.1.1.',
  '::1',
  '\\n',
  'call 1',
  '4111-',
  'ssn',
  'tel 1 ',
  'é',
  '字@',
  'a%40',
  '((1',
  'a_1234567',
  '1.1.1.1 ',
  '555-123-4567',
];

// Quadratic time would be hours here; the test ends by its timeout then.
it.each(pieces)('a megabyte of "%s" is redacted in linear time', (piece) => {
  expect(shown(piece.repeat(MEGABYTE / piece.length)).length).toBeGreaterThan(0);
});

it('a field with a name of a megabyte and many numbers is redacted in linear time', () => {
  // Each number was read together with the whole name: the name's length times the number of values.
  const value = { ['p'.repeat(MEGABYTE)]: Array.from({ length: 100_000 }, (_, n) => String(5_551_230_000 + n)) };
  expect(Object.values(redactor().begin().value(value) as Record<string, unknown[]>)[0]).toHaveLength(100_000);
});

it.each(['x[^y]*y|x', '(x+x+)+y', 'x.*x.*y', '(?:x|xx)+$', 'x'])(
  'the own pattern %s searches a megabyte in linear time',
  (pattern) => {
    expect(shown('x'.repeat(MEGABYTE), { kinds: [], custom: [{ label: 'X', pattern }] }).length).toBeGreaterThan(0);
  },
);
