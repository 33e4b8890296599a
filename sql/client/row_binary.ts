// Reads rows of FORMAT RowBinary that arrive in pieces: numbers of fixed width, and arrays of them as
// typed arrays. Rows are taken one by one, each only once all of its bytes are there.
// https://clickhouse.com/docs/interfaces/formats/RowBinary

/** Bytes of an array's length: a varint of up to 32 bits. */
const LENGTH_BYTES_MAX = 5;

/** Place in a row. Each method takes what follows, and throws MISSING if it has not arrived yet. */
export class RowReader {
  readonly #bytes: Buffer;
  at: number;

  constructor(bytes: Buffer, at: number) {
    this.#bytes = bytes;
    this.at = at;
  }

  uint8(): number {
    return this.#bytes.readUInt8(this.#skip(1));
  }

  uint32(): number {
    return this.#bytes.readUInt32LE(this.#skip(4));
  }

  /** @throws Error for a number that is not exact as a double */
  uint64(): number {
    const value = Number(this.#bytes.readBigUInt64LE(this.#skip(8)));
    if (!Number.isSafeInteger(value)) throw new Error(`the store returned ${value}, which is no exact number`);
    return value;
  }

  uint16s(): Uint16Array {
    return new Uint16Array(this.#array(2));
  }

  uint32s(): Uint32Array {
    return new Uint32Array(this.#array(4));
  }

  /** Returns the lower and the upper half of each number, in turns. */
  halvesOfUint64s(): Uint32Array {
    return new Uint32Array(this.#array(8));
  }

  float64s(): Float64Array {
    return new Float64Array(this.#array(8));
  }

  /** Returns a copy: numbers in a typed array begin at multiples of their width. */
  #array(width: number): ArrayBuffer {
    const bytes = this.#length() * width;
    const from = this.#skip(bytes);
    const start = this.#bytes.byteOffset + from;
    return this.#bytes.buffer.slice(start, start + bytes) as ArrayBuffer;
  }

  #length(): number {
    let length = 0;
    for (let index = 0; index < LENGTH_BYTES_MAX; index++) {
      const byte = this.uint8();
      length += (byte & 0x7f) * 2 ** (7 * index);
      if (byte < 0x80) return length;
    }
    throw new Error('the store returned an array without a length');
  }

  #skip(bytes: number): number {
    const from = this.at;
    if (from + bytes > this.#bytes.length) throw MISSING;
    this.at += bytes;
    return from;
  }
}

const MISSING = new Error('the rest of the row has not arrived');

/**
 * Yields rows as `take` reads them.
 * @throws Error when the pieces end within a row
 */
export async function* rowsOf<Row>(
  pieces: AsyncIterable<Buffer>,
  take: (reader: RowReader) => Row,
): AsyncGenerator<Row> {
  let held: Buffer[] = [];
  let heldBytes = 0;
  /** Bytes that must be held before a row is tried again: a large row is not joined for each piece. */
  let wanted = 1;
  for await (const piece of pieces) {
    held.push(piece);
    heldBytes += piece.length;
    if (heldBytes < wanted) continue;
    const bytes = held.length === 1 ? piece : Buffer.concat(held, heldBytes);
    let at = 0;
    for (;;) {
      const reader = new RowReader(bytes, at);
      const row = attempt(take, reader);
      if (row === null) break;
      at = reader.at;
      yield row.value;
      if (at === bytes.length) break;
    }
    const rest = bytes.subarray(at);
    held = rest.length === 0 ? [] : [rest];
    heldBytes = rest.length;
    wanted = at === 0 ? heldBytes * 2 : 1;
  }
  if (heldBytes === 0) return;
  let bytes = Buffer.concat(held, heldBytes);
  while (bytes.length > 0) {
    const reader = new RowReader(bytes, 0);
    const row = attempt(take, reader);
    if (row === null) throw new Error('the store ended an answer within a row');
    bytes = bytes.subarray(reader.at);
    yield row.value;
  }
}

/** Returns null while the row has not arrived as a whole. */
function attempt<Row>(take: (reader: RowReader) => Row, reader: RowReader): { value: Row } | null {
  try {
    return { value: take(reader) };
  } catch (error) {
    if (error === MISSING) return null;
    throw error;
  }
}
