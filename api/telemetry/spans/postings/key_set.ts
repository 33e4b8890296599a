// A set of UInt64 keys, each given as its two halves, for millions of keys: a table of typed arrays
// with open addressing. The keys must be hashes, since their lower halves choose the place.

/** Least number of places; a power of two, as every number of places is. */
const PLACES_MIN = 64;
/** The table grows when more than this share of its places is taken. */
const FILL_MAX = 0.5;

export class KeySet {
  /** Lower and upper halves, in turns; 0 and 0 where there is no key. */
  #table = new Uint32Array(PLACES_MIN * 2);
  #places = PLACES_MIN;
  #taken = 0;
  /** The key 0 cannot be told from an empty place. */
  #hasZero = false;

  get size(): number {
    return this.#taken + (this.#hasZero ? 1 : 0);
  }

  /** Bytes of the table. */
  get bytes(): number {
    return this.#table.byteLength;
  }

  add(low: number, high: number): void {
    if (low === 0 && high === 0) {
      this.#hasZero = true;
      return;
    }
    const at = this.#find(low, high);
    if (this.#table[at] === low && this.#table[at + 1] === high) return;
    this.#table[at] = low;
    this.#table[at + 1] = high;
    this.#taken += 1;
    if (this.#taken > this.#places * FILL_MAX) this.#grow();
  }

  has(low: number, high: number): boolean {
    if (low === 0 && high === 0) return this.#hasZero;
    const at = this.#find(low, high);
    return this.#table[at] === low && this.#table[at + 1] === high;
  }

  /** Returns the keys as decimal text, in no particular order. */
  keys(): string[] {
    const table = this.#table;
    const keys = this.#hasZero ? ['0'] : [];
    for (let at = 0; at < table.length; at += 2) {
      const [low = 0, high = 0] = [table[at], table[at + 1]];
      if (low !== 0 || high !== 0) keys.push(String((BigInt(high) << 32n) | BigInt(low)));
    }
    return keys;
  }

  /** Returns the keys as 8 bytes each, the lower half first, in no particular order. */
  packed(): Buffer {
    const table = this.#table;
    const bytes = Buffer.alloc(this.size * 8);
    // The key 0, if there is one, is the last.
    let to = 0;
    for (let at = 0; at < table.length; at += 2) {
      const [low = 0, high = 0] = [table[at], table[at + 1]];
      if (low === 0 && high === 0) continue;
      bytes.writeUInt32LE(low, to);
      bytes.writeUInt32LE(high, to + 4);
      to += 8;
    }
    return bytes;
  }

  /** Returns the index of the key, or of the empty place where it belongs. */
  #find(low: number, high: number): number {
    const table = this.#table;
    const mask = table.length - 1;
    let at = (low * 2) & mask;
    for (;;) {
      const here = table[at];
      if ((here === low && table[at + 1] === high) || (here === 0 && table[at + 1] === 0)) return at;
      at = (at + 2) & mask;
    }
  }

  #grow(): void {
    const old = this.#table;
    this.#places *= 2;
    this.#table = new Uint32Array(this.#places * 2);
    for (let at = 0; at < old.length; at += 2) {
      const [low = 0, high = 0] = [old[at], old[at + 1]];
      if (low === 0 && high === 0) continue;
      const to = this.#find(low, high);
      this.#table[to] = low;
      this.#table[to + 1] = high;
    }
  }
}
