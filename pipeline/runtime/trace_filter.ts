// Which traces a partition may have seen before: a Bloom filter over xxHash32 of org and trace, so that a trace that is
// certainly new costs no look-up in the store. The store computes the same hash when the filter is rebuilt.

const BITS_PER_TRACE = 12;
const HASHES = 6;
/** 32 MiB: about 22 million traces at 12 bits. Past that more look-ups are made; none is wrong. */
const BITS_MAX = 2 ** 28;

/** The SQL twin of traceHash. */
export const TRACE_HASH_SQL = "xxHash32(concat(org_id, ' ', trace_id))";

export function traceHash(orgId: string, traceId: string): number {
  return xxHash32(Buffer.from(`${orgId} ${traceId}`, 'utf8'));
}

const PRIME_1 = 0x9e3779b1;
const PRIME_2 = 0x85ebca77;
const PRIME_3 = 0xc2b2ae3d;
const PRIME_4 = 0x27d4eb2f;
const PRIME_5 = 0x165667b1;

const rotate = (value: number, bits: number): number => (value << bits) | (value >>> (32 - bits));
const round = (lane: number, word: number): number => Math.imul(rotate((lane + Math.imul(word, PRIME_2)) | 0, 13), PRIME_1);

/** xxHash32 with seed 0 (github.com/Cyan4973/xxHash, doc/xxhash_spec.md), as ClickHouse's xxHash32. */
export function xxHash32(bytes: Buffer): number {
  let at = 0;
  let hash: number;
  if (bytes.length >= 16) {
    let [a, b, c, d] = [(PRIME_1 + PRIME_2) | 0, PRIME_2 | 0, 0, -PRIME_1 | 0];
    for (; at <= bytes.length - 16; at += 16) {
      a = round(a, bytes.readInt32LE(at));
      b = round(b, bytes.readInt32LE(at + 4));
      c = round(c, bytes.readInt32LE(at + 8));
      d = round(d, bytes.readInt32LE(at + 12));
    }
    hash = (rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18)) | 0;
  } else {
    hash = PRIME_5 | 0;
  }
  hash = (hash + bytes.length) | 0;
  for (; at <= bytes.length - 4; at += 4) hash = Math.imul(rotate((hash + Math.imul(bytes.readInt32LE(at), PRIME_3)) | 0, 17), PRIME_4);
  for (; at < bytes.length; at += 1) hash = Math.imul(rotate((hash + Math.imul(bytes.readUInt8(at), PRIME_5)) | 0, 11), PRIME_1);
  hash = Math.imul(hash ^ (hash >>> 15), PRIME_2);
  hash = Math.imul(hash ^ (hash >>> 13), PRIME_3);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** A second hash out of the first (the finalizer of MurmurHash3). */
function mix(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}

export class TraceFilter {
  #bits: Uint32Array;
  #hashes: number[] | null = [];
  #count: number;
  size = 0;

  constructor(expected = 65_536) {
    this.#count = Math.min(BITS_MAX, Math.max(65_536, expected * 2 * BITS_PER_TRACE));
    this.#bits = new Uint32Array(Math.ceil(this.#count / 32));
  }

  add(hash: number): void {
    this.size += 1;
    if (this.#hashes !== null) this.#hashes.push(hash);
    if (this.size * BITS_PER_TRACE > this.#count && this.#hashes !== null) this.#grow();
    this.#set(hash);
  }

  mayHave(hash: number): boolean {
    for (let i = 0; i < HASHES; i += 1) {
      const at = this.#position(hash, i);
      if (((this.#bits[at >>> 5] ?? 0) & (1 << (at & 31))) === 0) return false;
    }
    return true;
  }

  /** The hashes are 4 bytes each, so the filter is rebuilt from them at twice the size until it reaches its bound. */
  #grow(): void {
    this.#count = Math.min(BITS_MAX, this.#count * 2);
    this.#bits = new Uint32Array(Math.ceil(this.#count / 32));
    for (const hash of this.#hashes ?? []) this.#set(hash);
    if (this.#count === BITS_MAX) this.#hashes = null;
  }

  #set(hash: number): void {
    for (let i = 0; i < HASHES; i += 1) {
      const at = this.#position(hash, i);
      this.#bits[at >>> 5] = (this.#bits[at >>> 5] ?? 0) | (1 << (at & 31));
    }
  }

  #position(hash: number, i: number): number {
    return ((hash + Math.imul(i, mix(hash) | 1)) >>> 0) % this.#count;
  }
}
