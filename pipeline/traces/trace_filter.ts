// A Bloom filter over the traces that a partition may have seen, so that a new trace costs no
// look-up in the store. It hashes organization and trace id with xxHash32; the store computes the
// same hash when the filter is rebuilt.
import { xxHash32 } from '../domain/traces/xxhash.ts';

const BITS_PER_TRACE = 12;
const HASHES_FIRST = 1024;
const HASHES = 6;
/**
 * 32 MiB: about 22 million traces at 12 bits. Beyond it, more traces are looked up needlessly; no
 * answer is wrong.
 */
const BITS_MAX = 2 ** 28;

/** Returns an unsigned 32-bit hash of a trace. sql/stores/partition_rows.ts computes the same from the columns. */
export function traceHash(orgId: string, traceId: string): number {
  return xxHash32(Buffer.from(`${orgId} ${traceId}`, 'utf8'));
}

/** Returns a second hash, derived from the first by the finalizer of MurmurHash3. */
function mix(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}

export class TraceFilter {
  #bits: Uint32Array;
  /**
   * Hashes of all traces, of which the first `size` are set; null once the filter has reached its
   * maximum and grows no more.
   */
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

  /** Doubles the filter and fills it again from the hashes, which take 4 bytes each. */
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
