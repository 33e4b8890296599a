// Structure of Parquet files, without their values: the number of rows of a file, and each row
// group as a file of its own. A reader that takes a file from a stream must keep all of it in
// memory; split into row groups, a file of any size passes through bounded memory. Pure. Format:
// https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
import { readStruct, type ThriftList, type ThriftStruct, type ThriftValue, writeStruct } from './thrift.ts';

const MAGIC = Buffer.from('PAR1');
/** Bytes of the footer's length and the magic at the end of every file. */
export const TAIL_BYTES = 8;

/** Ids of Thrift fields, by struct. */
const FILE = { rows: 3, groups: 4 } as const;
const GROUP = { columns: 1, rows: 3, offset: 5 } as const;
const CHUNK = { offset: 2, meta: 3, first_index: 4, last_index: 7 } as const;
const META = { compressed: 7, data: 9, index: 10, dictionary: 11, bloom: 14, bloom_length: 15 } as const;

export class ParquetError extends Error {}

/**
 * @returns the length of the footer, in bytes before the tail
 * @throws ParquetError when the file does not end like a Parquet file
 */
export function footerBytes(tail: Buffer, fileBytes: number): number {
  if (tail.length !== TAIL_BYTES || !tail.subarray(4).equals(MAGIC))
    throw new ParquetError('it does not end like a Parquet file');
  const bytes = tail.readUInt32LE(0);
  if (bytes + TAIL_BYTES + MAGIC.length > fileBytes)
    throw new ParquetError('its footer claims to be longer than the file');
  return bytes;
}

/** Row group: the range of its bytes in the file, and how to turn them into a file. */
export interface RowGroup {
  rows: number;
  from: number;
  until: number;
  /** Returns the bytes of a whole file with only this row group. */
  asFile: (content: Buffer) => Buffer;
}

export interface ParquetLayout {
  rows: number;
  groups: RowGroup[];
}

/**
 * Returns the layout that a footer describes.
 * @throws ParquetError when the bytes are not a footer
 */
export function layoutOf(footer: Buffer): ParquetLayout {
  try {
    const file = readStruct(footer);
    const groups = listOf(file, FILE.groups).items.map((group) => rowGroup(file, group as ThriftStruct));
    return { rows: numberOf(file, FILE.rows), groups };
  } catch (cause) {
    if (cause instanceof ParquetError) throw cause;
    throw new ParquetError('its footer cannot be read', { cause });
  }
}

function rowGroup(file: ThriftStruct, group: ThriftStruct): RowGroup {
  const chunks = listOf(group, GROUP.columns).items as ThriftStruct[];
  const metas = chunks.map((chunk) => structOf(chunk, CHUNK.meta));
  const starts = metas.map((meta) => Math.min(numberOf(meta, META.data), optional(meta, META.dictionary) ?? Infinity));
  const ends = metas.map((meta, index) => (starts[index] ?? 0) + numberOf(meta, META.compressed));
  const [from, until] = [Math.min(...starts), Math.max(...ends)];
  const rows = numberOf(group, GROUP.rows);
  const moved = (value: ThriftValue): bigint => (value as bigint) - BigInt(from - MAGIC.length);
  const asFile = (content: Buffer): Buffer => {
    const columns = chunks.map((chunk) => movedChunk(chunk, moved));
    const own = group.flatMap((field): ThriftStruct => {
      if (field.id === GROUP.columns) return [{ ...field, value: { ...(field.value as ThriftList), items: columns } }];
      return [field.id === GROUP.offset ? { ...field, value: BigInt(MAGIC.length) } : field];
    });
    const footer = writeStruct(
      file.map((field) => {
        if (field.id === FILE.rows) return { ...field, value: BigInt(rows) };
        return field.id === FILE.groups ? { ...field, value: { ...(field.value as ThriftList), items: [own] } } : field;
      }),
    );
    const length = Buffer.alloc(4);
    length.writeUInt32LE(footer.length);
    return Buffer.concat([MAGIC, content, footer, length, MAGIC]);
  };
  return { rows, from, until, asFile };
}

/**
 * Returns a column of a row group with its offsets moved, and without references to indexes and
 * filters elsewhere in the file.
 */
function movedChunk(chunk: ThriftStruct, moved: (value: ThriftValue) => bigint): ThriftStruct {
  return chunk.flatMap((field): ThriftStruct => {
    if (field.id >= CHUNK.first_index && field.id <= CHUNK.last_index) return [];
    if (field.id === CHUNK.offset) return [{ ...field, value: 0n }];
    if (field.id !== CHUNK.meta) return [field];
    const meta = (field.value as ThriftStruct).flatMap((one): ThriftStruct => {
      if (one.id === META.bloom || one.id === META.bloom_length) return [];
      const isOffset = one.id === META.data || one.id === META.index || one.id === META.dictionary;
      return [isOffset ? { ...one, value: moved(one.value) } : one];
    });
    return [{ ...field, value: meta }];
  });
}

function optional(struct: ThriftStruct, id: number): number | null {
  const value = struct.find((field) => field.id === id)?.value;
  return typeof value === 'bigint' ? Number(value) : null;
}

function numberOf(struct: ThriftStruct, id: number): number {
  const value = optional(struct, id);
  if (value === null) throw new ParquetError(`its footer has no number ${id}`);
  return value;
}

function structOf(struct: ThriftStruct, id: number): ThriftStruct {
  const value = struct.find((field) => field.id === id)?.value;
  if (!Array.isArray(value)) throw new ParquetError(`its footer has no part ${id}`);
  return value;
}

function listOf(struct: ThriftStruct, id: number): ThriftList {
  const value = struct.find((field) => field.id === id)?.value;
  if (typeof value !== 'object' || Array.isArray(value) || Buffer.isBuffer(value))
    throw new ParquetError(`its footer has no list ${id}`);
  return value;
}
