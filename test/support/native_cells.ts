// Generators of cells for every type of column that travels in a block.
import fc from 'fast-check';
import type { Cell } from '../../sql/client/native_block.ts';

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('', 'a\0b', '\0', 'naïve', '日本語', '😀', 'a'.repeat(127), 'a'.repeat(128)),
  fc.constantFrom('é'.repeat(64), 'b'.repeat(20_000), '語'.repeat(6000), '"\\\n\r\t', '\\ud800', 'NULL', '\\N'),
);
const whole = (min: number, max: number): fc.Arbitrary<number> =>
  fc.oneof(fc.integer({ min, max }), fc.constantFrom(min, max, 0));
const decimal = (digits: number): fc.Arbitrary<bigint> => {
  const max = 10n ** BigInt(digits) - 1n;
  return fc.oneof(fc.bigInt({ min: -max, max }), fc.constantFrom(0n, 1n, -1n, max, -max));
};

/** Numbers that do not fit into a number, as their hexadecimal digits. */
const large = fc
  .oneof(fc.bigInt({ min: 2n ** 53n, max: 2n ** 64n - 1n }), fc.constantFrom(2n ** 53n, 2n ** 63n, 2n ** 64n - 1n))
  .map((value) => value.toString(16).padStart(16, '0'));
const TIME = "DateTime64(3, 'UTC')";
/** Milliseconds of 1900 and of the end of 2299, which are the bounds of DateTime64. */
const [TIME_MIN, TIME_MAX] = [-2_208_988_800_000, 10_413_791_999_999];

/** Generators by type of column. */
export const CELLS: Readonly<Record<string, fc.Arbitrary<Cell>>> = {
  String: text,
  'LowCardinality(String)': fc.oneof(fc.constantFrom('', 'gpt-4o', 'a\0b'), text),
  Bool: fc.boolean(),
  Int8: whole(-128, 127),
  UInt16: whole(0, 2 ** 16 - 1),
  UInt32: whole(0, 2 ** 32 - 1),
  UInt64: fc.oneof(whole(0, Number.MAX_SAFE_INTEGER), large),
  Int64: whole(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
  Date: whole(0, 2 ** 16 - 1),
  "DateTime('UTC')": whole(0, 2 ** 32 - 1),
  [TIME]: whole(TIME_MIN, TIME_MAX),
  [`Nullable(${TIME})`]: fc.oneof(fc.constant(null), whole(TIME_MIN, TIME_MAX)),
  'Decimal(18, 12)': decimal(18),
  'Decimal(18, 6)': decimal(18),
  'Decimal(38, 12)': decimal(38),
  'Decimal(38, 6)': decimal(38),
  'Nullable(Float64)': fc.oneof(fc.constant(null), fc.double()),
  'Array(String)': fc.array(text, { maxLength: 5 }),
  'Array(UInt32)': fc.array(whole(0, 2 ** 32 - 1), { maxLength: 5 }),
  'Array(LowCardinality(String))': fc.array(text, { maxLength: 5 }),
  'Array(Decimal(38, 12))': fc.array(decimal(38), { maxLength: 5 }),
};
