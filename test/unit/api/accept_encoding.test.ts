// The content coding of a response follows the weights of Accept-Encoding.
import { expect, test } from 'vitest';
import { preferredCoding } from '../../../api/http/accept_encoding.ts';

test.each([
  [undefined, null],
  ['', null],
  ['gzip', 'gzip'],
  ['br', 'br'],
  ['gzip, deflate, br', 'br'],
  ['GZIP', 'gzip'],
  ['x-gzip', 'gzip'],
  ['deflate, zstd', null],
  ['gzip;q=0', null],
  ['gzip;q=0.0, br;q=0', null],
  ['gzip;q=1, br;q=0.5', 'gzip'],
  ['gzip; q=0.5 , br; q=0.5', 'br'],
  ['*', 'br'],
  ['*;q=0', null],
  ['gzip, *;q=0', 'gzip'],
  ['br;q=0, *', 'gzip'],
  ['identity', null],
  ['identity;q=0.5, gzip;q=0.4', null],
  ['identity;q=0.5, gzip;q=0.5', 'gzip'],
  ['identity;q=0, gzip', 'gzip'],
  ['gzip;q=2', null],
  ['gzip;q=', null],
  ['gzip;q=abc, br', 'br'],
  [',,;q=1, gzip', 'gzip'],
])('Accept-Encoding %j is answered with %j', (header, expected) => {
  expect(preferredCoding(header, ['br', 'gzip'])).toBe(expected);
});

test('a coding that is not on offer is never chosen', () => {
  expect(preferredCoding('br', ['gzip'])).toBeNull();
  expect(preferredCoding('*', [])).toBeNull();
});
