import fc from 'fast-check';
import { expect, it } from 'vitest';
import { placesWithAll } from '../../../api/telemetry/spans/postings/intersection.ts';
import { KeySet } from '../../../api/telemetry/spans/postings/key_set.ts';

const half = (key: bigint): [number, number] => [Number(key & 0xffff_ffffn), Number(key >> 32n)];

/** Keys that often share a half, among them 0. */
const key = fc
  .tuple(fc.constantFrom(0, 1, 63, 64, 0x8000_0000, 0xffff_ffff), fc.nat({ max: 40 }))
  .map(([low, high]) => (BigInt(high) << 32n) | BigInt(low));

it('a set of keys holds each key once, as a set of numbers does', () => {
  fc.assert(
    fc.property(fc.array(key, { maxLength: 400 }), fc.array(key, { maxLength: 50 }), (added, asked) => {
      const keys = new KeySet();
      for (const one of added) keys.add(...half(one));
      const model = new Set(added);
      expect(keys.size).toBe(model.size);
      expect(new Set(keys.keys())).toEqual(new Set([...model].map(String)));
      const packed = keys.packed();
      const places = Array.from({ length: packed.length / 8 }, (_, n) => n * 8);
      expect(new Set(places.map((at) => packed.readBigUInt64LE(at)))).toEqual(model);
      expect(asked.map((one) => keys.has(...half(one)))).toEqual(asked.map((one) => model.has(one)));
    }),
  );
});

it('a set of keys grows to many keys', () => {
  const keys = new KeySet();
  for (let n = 0; n < 100_000; n++) keys.add((n * 2_654_435_761) >>> 0, n);
  expect(keys.size).toBe(100_000);
  const numbers = Array.from({ length: 100_000 }, (_, n) => n);
  expect(numbers.every((n) => keys.has((n * 2_654_435_761) >>> 0, n))).toBe(true);
  expect(keys.has(2_654_435_761, 2)).toBe(false);
});

const FIRST = 100;
const SIZE = 50;
const list = fc.option(
  fc.uniqueArray(fc.integer({ min: FIRST, max: FIRST + SIZE - 1 }), { maxLength: SIZE }).map((places) => ({
    places: Uint16Array.from(places),
    counts: null,
  })),
  { freq: 10 },
);

it('the places with all words are those that every list has, of documents that are asked', () => {
  fc.assert(
    fc.property(
      fc.array(list, { minLength: 1, maxLength: 4 }),
      fc.array(fc.nat({ max: 2 }), { minLength: SIZE, maxLength: SIZE }),
      (postings, lengths) => {
        const found = placesWithAll({ first: FIRST, postings }, Uint16Array.from(lengths));
        const expected = Array.from({ length: SIZE }, (_, at) => at + FIRST).filter(
          (place) => (lengths[place - FIRST] ?? 0) > 0 && postings.every((one) => one?.places.includes(place) === true),
        );
        expect([...found].sort((a, b) => a - b)).toEqual(expected);
      },
    ),
  );
});
