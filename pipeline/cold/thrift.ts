// Thrift's compact protocol, as far as the footer of a Parquet file needs it: parses any struct
// into a tree of fields and writes it back. Fields that the caller does not look at pass through
// unchanged, whichever version of the format wrote them. Pure. Format:
// https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md

/** Type codes of fields and items. */
const TRUE = 1;
const FALSE = 2;
const BYTE = 3;
const I16 = 4;
const I32 = 5;
const I64 = 6;
const DOUBLE = 7;
const BINARY = 8;
const LIST = 9;
const SET = 10;
const STRUCT = 12;
/** Maximum nesting; deeper bytes are not a footer that the service wrote. */
const DEPTH_MAX = 32;
/**
 * Maximum items whose number fits into the list's header byte; longer lists have a length of their
 * own.
 */
const SHORT_LIST_MAX = 14;

export interface ThriftField {
  id: number;
  type: number;
  value: ThriftValue;
}
export type ThriftStruct = ThriftField[];
export interface ThriftList {
  /** Type code of the items of a LIST or SET. */
  item: number;
  items: ThriftValue[];
}
/** Value: boolean, integer, double or binary as its bytes, list, or struct. */
export type ThriftValue = boolean | bigint | Buffer | ThriftList | ThriftStruct;

class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  byte(): number {
    const value = this.#bytes[this.#at++];
    if (value === undefined) throw new RangeError('the footer is truncated');
    return value;
  }

  take(count: number): Buffer {
    if (this.#at + count > this.#bytes.length) throw new RangeError('the footer is truncated');
    this.#at += count;
    return this.#bytes.subarray(this.#at - count, this.#at);
  }

  varint(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.byte();
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw new RangeError('a number of the footer is too long');
  }

  zigzag(): bigint {
    const value = this.varint();
    return (value >> 1n) ^ -(value & 1n);
  }

  value(type: number, depth: number): ThriftValue {
    if (depth > DEPTH_MAX) throw new RangeError('the footer is nested too deep');
    switch (type) {
      case TRUE:
      case FALSE:
        return type === TRUE;
      case BYTE:
        return BigInt(this.byte());
      case I16:
      case I32:
      case I64:
        return this.zigzag();
      case DOUBLE:
        return this.take(8);
      case BINARY:
        return this.take(Number(this.varint()));
      case LIST:
      case SET:
        return this.#list(depth);
      case STRUCT:
        return this.struct(depth + 1);
      default:
        throw new RangeError(`the footer has a field of type ${type}`);
    }
  }

  #list(depth: number): ThriftList {
    const head = this.byte();
    const item = head & 0x0f;
    const count = head >> 4 === 15 ? Number(this.varint()) : head >> 4;
    const items = Array.from({ length: Math.min(count, this.#bytes.length) }, () =>
      // A boolean within a list is a byte.
      item === TRUE || item === FALSE ? this.byte() === TRUE : this.value(item, depth),
    );
    return { item, items };
  }

  struct(depth = 0): ThriftStruct {
    const fields: ThriftStruct = [];
    let id = 0;
    for (;;) {
      const head = this.byte();
      if (head === 0) return fields;
      const delta = head >> 4;
      id = delta === 0 ? Number(this.zigzag()) : id + delta;
      const type = head & 0x0f;
      fields.push({ id, type, value: this.value(type, depth) });
    }
  }
}

/** @throws RangeError when the bytes are not a struct */
export function readStruct(bytes: Buffer): ThriftStruct {
  return new Reader(bytes).struct();
}

export function writeStruct(fields: ThriftStruct): Buffer {
  const out: Buffer[] = [];
  putStruct(out, fields);
  return Buffer.concat(out);
}

function putStruct(out: Buffer[], fields: ThriftStruct): void {
  let last = 0;
  for (const { id, type, value } of fields) {
    const written = type === TRUE || type === FALSE ? (value === true ? TRUE : FALSE) : type;
    const delta = id - last;
    if (delta > 0 && delta <= 15) out.push(Buffer.of((delta << 4) | written));
    else out.push(Buffer.of(written), zigzag(BigInt(id)));
    last = id;
    if (written !== TRUE && written !== FALSE) putValue(out, type, value);
  }
  out.push(Buffer.of(0));
}

function putValue(out: Buffer[], type: number, value: ThriftValue): void {
  if (typeof value === 'boolean') out.push(Buffer.of(value ? TRUE : FALSE));
  else if (typeof value === 'bigint') out.push(type === BYTE ? Buffer.of(Number(value)) : zigzag(value));
  else if (Buffer.isBuffer(value)) out.push(...(type === BINARY ? [varint(BigInt(value.length)), value] : [value]));
  else if (Array.isArray(value)) putStruct(out, value);
  else {
    const { item, items } = value;
    if (items.length <= SHORT_LIST_MAX) out.push(Buffer.of((items.length << 4) | item));
    else out.push(Buffer.of(0xf0 | item), varint(BigInt(items.length)));
    for (const one of items) putValue(out, item, one);
  }
}

function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  let left = value;
  while (left >= 0x80n) {
    bytes.push(Number(left & 0x7fn) | 0x80);
    left >>= 7n;
  }
  bytes.push(Number(left));
  return Buffer.from(bytes);
}

const zigzag = (value: bigint): Buffer => varint(value < 0n ? -value * 2n - 1n : value * 2n);
