// The footer of a Parquet file, parsed and written. Tests with the engine show that it reads the
// result.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { footerBytes, layoutOf, ParquetError } from '../../../pipeline/cold/parquet.ts';
import { readStruct, type ThriftStruct, writeStruct } from '../../../pipeline/cold/thrift.ts';

const { struct } = fc.letrec<{ struct: ThriftStruct; list: { item: number; items: bigint[] } }>((tie) => ({
  list: fc.record({
    item: fc.constant(6),
    items: fc.array(fc.bigInt({ min: -(2n ** 62n), max: 2n ** 62n }), { maxLength: 40 }),
  }),
  struct: fc
    .array(
      fc.oneof(
        { depthSize: 'small' },
        fc.record({ type: fc.constantFrom(4, 5, 6), value: fc.bigInt({ min: -(2n ** 62n), max: 2n ** 62n }) }),
        fc.boolean().map((value) => ({ type: value ? 1 : 2, value })),
        fc.record({
          type: fc.constant(8),
          value: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
        }),
        fc.record({ type: fc.constant(9), value: tie('list') }),
        fc.record({ type: fc.constant(12), value: tie('struct') }),
      ),
      { maxLength: 8 },
    )
    .chain((fields) =>
      fc
        .uniqueArray(fc.integer({ min: 1, max: 400 }), { minLength: fields.length, maxLength: fields.length })
        .map((ids) => fields.map((field, index) => ({ ...field, id: ids.toSorted((a, b) => a - b)[index] ?? 0 }))),
    ),
}));

describe('thrift', () => {
  it('thrift reads back whatever it writes', () => {
    fc.assert(
      fc.property(struct, (fields) => {
        expect(readStruct(writeStruct(fields))).toEqual(fields);
      }),
    );
  });

  it('thrift reports bytes that are not a struct, and never hangs', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          readStruct(Buffer.from(bytes));
        } catch (error) {
          expect(error).toBeInstanceOf(RangeError);
        }
      }),
    );
  });
});

const I64 = 6;
const number = (id: number, value: number) => ({ id, type: I64, value: BigInt(value) });
const chunk = (data: number, compressed: number, dictionary?: number): ThriftStruct => [
  number(2, data),
  {
    id: 3,
    type: 12,
    value: [
      number(7, compressed),
      number(9, data),
      ...(dictionary === undefined ? [] : [number(11, dictionary)]),
      number(14, 999_999),
    ],
  },
  number(6, 888_888),
];
const file = writeStruct([
  number(3, 30),
  {
    id: 4,
    type: 9,
    value: {
      item: 12,
      items: [
        [{ id: 1, type: 9, value: { item: 12, items: [chunk(54, 100, 4), chunk(104, 20)] } }, number(3, 10)],
        [{ id: 1, type: 9, value: { item: 12, items: [chunk(130, 50)] } }, number(3, 20), number(5, 130)],
      ],
    },
  },
]);

describe('a layout', () => {
  it('a layout lists rows and row groups, each with its bytes', () => {
    const { rows, groups } = layoutOf(file);
    expect(rows).toBe(30);
    expect(groups.map(({ rows: own, from, until }) => [own, from, until])).toEqual([
      [10, 4, 124],
      [20, 130, 180],
    ]);
  });

  it('a layout makes a file of one row group, with its offsets moved and nothing from elsewhere', () => {
    const group = layoutOf(file).groups[1];
    const made = group?.asFile(Buffer.alloc(50, 7)) ?? Buffer.alloc(0);
    const footer = footerBytes(made.subarray(-8), made.length);
    const alone = layoutOf(made.subarray(made.length - 8 - footer, made.length - 8));
    expect([made.subarray(0, 4).toString(), alone.rows, alone.groups.map(({ from, until }) => [from, until])]).toEqual([
      'PAR1',
      20,
      [[4, 54]],
    ]);
    const text = JSON.stringify(
      readStruct(made.subarray(made.length - 8 - footer, made.length - 8)),
      (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value),
    );
    expect([text.includes('999999'), text.includes('888888')]).toEqual([false, false]);
  });

  it.each([
    [Buffer.from('00000000'), 100],
    [Buffer.from([0xff, 0xff, 0, 0, ...Buffer.from('PAR1')]), 100],
    [Buffer.from('PAR1'), 4],
  ])('a file that does not end as Parquet has no layout', (tail, bytes) => {
    expect(() => footerBytes(tail, bytes)).toThrow(ParquetError);
  });

  it.each([[Buffer.alloc(0)], [Buffer.of(0)], [Buffer.from('not a footer')]])(
    'bytes that are not a footer have no layout',
    (bytes) => {
      expect(() => layoutOf(bytes)).toThrow(ParquetError);
    },
  );
});
