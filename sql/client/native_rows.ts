// Reads the rows of a block of ClickHouse's Native format that native_block.ts wrote, for the rare case
// that rows are needed one by one after they were encoded. It takes the same columns, and returns
// cells as they were given to the encoder, except that a number which JSON cannot hold is null, half of
// a surrogate pair is U+FFFD, and a UInt64 is a number where a number can hold it.
import type { BlockColumn, Cell, Cells } from './native_block.ts';

/** Reads the values of one column. `prefix` precedes the column, also where it is nested. */
interface ColumnReader {
  prefix?(from: BlockReader): void;
  values(from: BlockReader, count: number): Cell[];
}

/**
 * Returns the rows of a block.
 * @throws Error if the block does not have the given columns
 */
export function decodeBlock(columns: readonly BlockColumn[], block: Buffer): Cells[] {
  const from = new BlockReader(block);
  const width = from.varint();
  const count = from.varint();
  if (width !== columns.length) throw new Error(`the block has ${width} columns, not ${columns.length}`);
  const rows = Array.from({ length: count }, (): Cell[] => []);
  for (const { name, type } of columns) {
    const found = `${from.text()} ${from.text()}`;
    if (found !== `${name} ${type}`) throw new Error(`the block has a column ${found}, not ${name} ${type}`);
    const reader = readerOf(type);
    reader.prefix?.(from);
    for (const [index, cell] of reader.values(from, count).entries()) rows[index]?.push(cell);
  }
  return rows;
}

class BlockReader {
  readonly #block: Buffer;
  #at = 0;

  constructor(block: Buffer) {
    this.#block = block;
  }

  varint(): number {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = this.#block.readUInt8(this.#at++);
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  }

  text(): string {
    const length = this.varint();
    this.#at += length;
    return this.#block.toString('utf8', this.#at - length, this.#at);
  }

  /** Returns the place of a value of some bytes, and moves behind it. */
  #take(bytes: number): number {
    this.#at += bytes;
    return this.#at - bytes;
  }

  int8(): number {
    return this.#block.readInt8(this.#take(1));
  }

  uint(bytes: 1 | 2 | 4): number {
    return this.#block.readUIntLE(this.#take(bytes), bytes);
  }

  int64(): bigint {
    return this.#block.readBigInt64LE(this.#take(8));
  }

  uint64(): bigint {
    return this.#block.readBigUInt64LE(this.#take(8));
  }

  double(): number {
    return this.#block.readDoubleLE(this.#take(8));
  }
}

/** Returns a reader of values that follow each other. */
const each = (read: (from: BlockReader) => Cell): ColumnReader => ({
  values: (from, count) => Array.from({ length: count }, () => read(from)),
});

const LOW_CARDINALITY: ColumnReader = {
  prefix(from) {
    from.uint64();
  },
  values(from, count) {
    if (count === 0) return [];
    const width = ([1, 2, 4] as const)[Number(from.uint64() & 255n)] ?? 4;
    const keys = Array.from({ length: Number(from.uint64()) }, () => from.text());
    const places = Number(from.uint64());
    return Array.from({ length: places }, () => keys[from.uint(width)] ?? '');
  },
};

const nullable = (inner: ColumnReader): ColumnReader => ({
  values(from, count) {
    const nulls = Array.from({ length: count }, () => from.uint(1) === 1);
    return inner.values(from, count).map((cell, index) => (nulls[index] === true ? null : cell));
  },
});

const arrayOf = (inner: ColumnReader): ColumnReader => ({
  prefix: (from) => inner.prefix?.(from),
  values(from, count) {
    const ends = Array.from({ length: count }, () => Number(from.uint64()));
    const all = inner.values(from, ends.at(-1) ?? 0);
    return ends.map((end, index) => all.slice(ends[index - 1] ?? 0, end) as string[] | number[] | bigint[]);
  },
});

const UINT64 = each((from) => {
  const value = from.uint64();
  return value <= Number.MAX_SAFE_INTEGER ? Number(value) : value.toString(16).padStart(16, '0');
});
const INT64 = each((from) => Number(from.int64()));
const READERS = new Map<string, ColumnReader>([
  ['String', each((from) => from.text())],
  ['LowCardinality(String)', LOW_CARDINALITY],
  ['Bool', each((from) => from.uint(1) === 1)],
  ['Float64', each((from) => from.double())],
  ['Int8', each((from) => from.int8())],
  ['UInt16', each((from) => from.uint(2))],
  ['UInt32', each((from) => from.uint(4))],
  ['UInt64', UINT64],
  ['Int64', INT64],
  ['Date', each((from) => from.uint(2))],
  ["DateTime('UTC')", each((from) => from.uint(4))],
  ["DateTime64(3, 'UTC')", INT64],
]);
const DECIMAL64 = each((from) => from.int64());
const DECIMAL128 = each((from) => from.uint64() | (from.int64() << 64n));
/** Digits of the largest Decimal of 64 bits. */
const DIGITS_64 = 18;

/** @throws Error for a type that native_block.ts does not write */
function readerOf(type: string): ColumnReader {
  const known = READERS.get(type);
  if (known !== undefined) return known;
  const [, outer, inner = ''] = /^(Array|Nullable|Decimal)\((.+)\)$/.exec(type) ?? [];
  if (outer === 'Array') return arrayOf(readerOf(inner));
  if (outer === 'Nullable') return nullable(readerOf(inner));
  if (outer === 'Decimal') return Number.parseInt(inner, 10) > DIGITS_64 ? DECIMAL128 : DECIMAL64;
  throw new Error(`no reading of columns of type ${type}`);
}
