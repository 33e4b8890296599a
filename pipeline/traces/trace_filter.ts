// Which traces a partition may have seen before: a Bloom filter over xxHash32 of org and trace, so that a trace that is
// certainly new costs no look-up in the store. The store computes the same hash when the filter is rebuilt.
import { xxHash32 } from '../domain/traces/xxhash.ts';

const BITS_PER_TRACE = 12;
const HASHES_FIRST = 1024;
const HASHES = 6;
/** 32 MiB: about 22 million traces at 12 bits. Past that more look-ups are made; none is wrong. */
const BITS_MAX = 2 ** 28;

/** Returns an unsigned 32-bit hash of a trace. sql/stores/partition_rows.ts computes the same from the columns. */
export function traceHash(orgId: string, traceId: string): number {
  return xxHash32(Buffer.from(`${orgId} ${traceId}`, 'utf8'));
}

/** A second hash out of the first (the finalizer of MurmurHash3). */
function mix(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}

export class TraceFilter {
  #bits: Uint32Array;
  /** The first `size` of them; as long as a power of two of them needs. Null where the filter grows no more. */
  #hashes: Uint32Array | null = new Uint32Array(HASHES_FIRST);
  #count: number;
  size = 0;

  constructor(expected = 65_536) {
    this.#count = Math.min(BITS_MAX, Math.max(65_536, expected * 2 * BITS_PER_TRACE));
    this.#bits = new Uint32Array(Math.ceil(this.#count / 32));
  }

  add(hash: number): void {
    if (this.#hashes !== null) this.#keep(this.#hashes, hash);
    this.size += 1;
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

  #keep(hashes: Uint32Array, hash: number): void {
    let kept = hashes;
    if (this.size === hashes.length) {
      kept = new Uint32Array(hashes.length * 2);
      kept.set(hashes);
      this.#hashes = kept;
    }
    kept[this.size] = hash;
  }

  /** The hashes are 4 bytes each, so the filter is rebuilt from them at twice the size until it reaches its bound. */
  #grow(): void {
    this.#count = Math.min(BITS_MAX, this.#count * 2);
    this.#bits = new Uint32Array(Math.ceil(this.#count / 32));
    for (const hash of this.#hashes?.subarray(0, this.size) ?? []) this.#set(hash);
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
