import { Readable } from 'node:stream';
import { expect, it } from 'vitest';
import { type RowReader, rowsOf } from '../../../sql/client/row_binary.ts';

/** A length as RowBinary writes it, LEB128. */
function length(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...length(value >>> 7)];
}

interface Row {
  byte: number;
  big: number;
  small: number[];
  doubles: number[];
}

const encode = ({ byte, big, small, doubles }: Row): Buffer => {
  const fixed = Buffer.alloc(9);
  fixed.writeUInt8(byte);
  fixed.writeBigUInt64LE(BigInt(big), 1);
  return Buffer.concat([
    fixed,
    Buffer.from(length(small.length)),
    Buffer.from(Uint16Array.from(small).buffer),
    Buffer.from(length(doubles.length)),
    Buffer.from(Float64Array.from(doubles).buffer),
  ]);
};
const take = (reader: RowReader): Row => ({
  byte: reader.uint8(),
  big: reader.uint64(),
  small: [...reader.uint16s()],
  doubles: [...reader.float64s()],
});

const rows: Row[] = [
  { byte: 7, big: 2 ** 52, small: [1, 2, 65_535], doubles: [0.5] },
  { byte: 0, big: 0, small: [], doubles: [] },
  { byte: 255, big: 9, small: Array.from({ length: 300 }, (_, n) => n), doubles: [-1, Infinity] },
];
const bytes = Buffer.concat(rows.map(encode));

async function read(pieces: Buffer[]): Promise<Row[]> {
  const found: Row[] = [];
  for await (const row of rowsOf(Readable.from(pieces) as AsyncIterable<Buffer>, take)) found.push(row);
  return found;
}

it('rows are read however their bytes are cut', async () => {
  expect(await read([bytes])).toEqual(rows);
  expect(await read([...bytes].map((byte) => Buffer.of(byte)))).toEqual(rows);
  for (let at = 0; at <= bytes.length; at += 1)
    expect(await read([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(rows);
  expect(await read([])).toEqual([]);
});

it('an answer that ends within a row is an error', async () => {
  const ends = [encode(rows[0] as Row).length, bytes.length - encode(rows[2] as Row).length, bytes.length];
  for (let at = 1; at < bytes.length; at += 7) {
    if (ends.includes(at)) continue;
    await expect(read([bytes.subarray(0, at)])).rejects.toThrow('the store ended an answer within a row');
  }
});

it('a number that a double cannot hold is an error', async () => {
  const row = encode({ byte: 1, big: 0, small: [], doubles: [] });
  row.writeBigUInt64LE(2n ** 60n, 1);
  await expect(read([row])).rejects.toThrow('no exact number');
});
