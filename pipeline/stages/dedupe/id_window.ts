// The ids of the events seen within the dedupe window, for one partition.
// Exact while they fit: 64-bit ids in open-addressing tables, one table a generation (a sixth of the window), so that old
// ids leave by dropping a table. Past the bound the oldest table becomes a Bloom filter: what it does not know is new for
// certain, what it may know has to be looked up in the store.

const GENERATIONS = 6;
const FILTER_BITS_PER_ID = 14;
const FILTER_HASHES = 10;
const LOAD_MAX = 0.6;

/** Open-addressing set of 64-bit ids as pairs of 32-bit halves. */
class IdSet {
  size = 0;
  #slots: Uint32Array;
  #mask: number;
  #hasZero = false;

  constructor(slots: number) {
    this.#slots = new Uint32Array(slots * 2);
    this.#mask = slots - 1;
  }

  get bytes(): number {
    return this.#slots.byteLength;
  }

  has(high: number, low: number): boolean {
    if (high === 0 && low === 0) return this.#hasZero;
    const slots = this.#slots;
    for (let at = low & this.#mask; ; at = (at + 1) & this.#mask) {
      const slotLow = slots[at * 2];
      const slotHigh = slots[at * 2 + 1];
      if (slotLow === low && slotHigh === high) return true;
      if (slotLow === 0 && slotHigh === 0) return false;
    }
  }

  add(high: number, low: number): void {
    if (high === 0 && low === 0) {
      if (!this.#hasZero) this.size += 1;
      this.#hasZero = true;
      return;
    }
    if (this.has(high, low)) return;
    if (this.size >= (this.#mask + 1) * LOAD_MAX) this.#grow();
    this.#insert(high, low);
    this.size += 1;
  }

  *ids(): Generator<[number, number]> {
    if (this.#hasZero) yield [0, 0];
    for (let at = 0; at < this.#slots.length; at += 2) {
      const low = this.#slots[at] ?? 0;
      const high = this.#slots[at + 1] ?? 0;
      if (low !== 0 || high !== 0) yield [high, low];
    }
  }

  #insert(high: number, low: number): void {
    const slots = this.#slots;
    let at = low & this.#mask;
    while (slots[at * 2] !== 0 || slots[at * 2 + 1] !== 0) at = (at + 1) & this.#mask;
    slots[at * 2] = low;
    slots[at * 2 + 1] = high;
  }

  #grow(): void {
    const old = this.#slots;
    const slots = (this.#mask + 1) * 2;
    this.#slots = new Uint32Array(slots * 2);
    this.#mask = slots - 1;
    for (let at = 0; at < old.length; at += 2) {
      const low = old[at] ?? 0;
      const high = old[at + 1] ?? 0;
      if (low !== 0 || high !== 0) this.#insert(high, low);
    }
  }
}

/** Bloom filter over 64-bit ids; the ids are hashes already, so their halves serve as the two hash functions. */
class IdFilter {
  readonly #bits: Uint32Array;
  readonly #count: number;

  constructor(ids: IdSet) {
    this.#count = Math.max(64, ids.size * FILTER_BITS_PER_ID);
    this.#bits = new Uint32Array(Math.ceil(this.#count / 32));
    for (const [high, low] of ids.ids()) {
      for (let i = 0; i < FILTER_HASHES; i += 1) this.#set(this.#position(high, low, i));
    }
  }

  get bytes(): number {
    return this.#bits.byteLength;
  }

  mayHave(high: number, low: number): boolean {
    for (let i = 0; i < FILTER_HASHES; i += 1) {
      const at = this.#position(high, low, i);
      if (((this.#bits[at >>> 5] ?? 0) & (1 << (at & 31))) === 0) return false;
    }
    return true;
  }

  #position(high: number, low: number, i: number): number {
    return ((low + i * (high | 1)) >>> 0) % this.#count;
  }

  #set(at: number): void {
    this.#bits[at >>> 5] = (this.#bits[at >>> 5] ?? 0) | (1 << (at & 31));
  }
}

interface Generation {
  /** Start of its time, milliseconds. */
  since: number;
  ids: IdSet | null;
  filter: IdFilter | null;
}

/** `seen`: a repeat. `new`: not in the window. `unsure`: has to be looked up in the store. */
export type Sighting = 'seen' | 'new' | 'unsure';

/**
 * Window over the ids of one partition. Ids are hex16 (64 bits).
 * Memory: 13 to 27 bytes an id in the exact tables, 2 in the filters.
 */
export class IdWindow {
  #generations: Generation[] = [];
  readonly #windowMs: number;
  readonly #exactIdsMax: number;

  /**
   * @param windowMs how long an id is remembered
   * @param exactIdsMax ids held exactly before the oldest generation becomes a filter
   */
  constructor(windowMs: number, exactIdsMax: number) {
    this.#windowMs = windowMs;
    this.#exactIdsMax = exactIdsMax;
  }

  get size(): number {
    return this.#generations.reduce((sum, generation) => sum + (generation.ids?.size ?? 0), 0);
  }

  get bytes(): number {
    return this.#generations.reduce((sum, generation) => sum + (generation.ids?.bytes ?? 0) + (generation.filter?.bytes ?? 0), 0);
  }

  /** Whether it is sure of every id: nothing has to be looked up. */
  get isExact(): boolean {
    return this.#generations.every((generation) => generation.filter === null);
  }

  look(eventHex: string): Sighting {
    return this.lookHalves(Number.parseInt(eventHex.slice(0, 8), 16), Number.parseInt(eventHex.slice(8), 16));
  }

  lookHalves(high: number, low: number): Sighting {
    let unsure = false;
    for (const generation of this.#generations) {
      if (generation.ids?.has(high, low) === true) return 'seen';
      unsure ||= generation.filter?.mayHave(high, low) === true;
    }
    return unsure ? 'unsure' : 'new';
  }

  /** Remembers an id that was received at a time; ids of the past (a rebuild) go into their own generation. */
  add(eventHex: string, receivedAt: number): void {
    this.addHalves(Number.parseInt(eventHex.slice(0, 8), 16), Number.parseInt(eventHex.slice(8), 16), receivedAt);
  }

  addHalves(high: number, low: number, receivedAt: number): void {
    const length = this.#windowMs / GENERATIONS;
    const since = Math.floor(receivedAt / length) * length;
    let generation = this.#generations.find((candidate) => candidate.since === since);
    if (generation === undefined) {
      generation = { since, ids: new IdSet(1024), filter: null };
      this.#generations.push(generation);
      this.#generations.sort((a, b) => a.since - b.since);
    }
    // A late id for a generation that is a filter by now: it is kept in the exact table beside the filter.
    generation.ids ??= new IdSet(1024);
    generation.ids.add(high, low);
  }

  /** Forgets what is older than the window and keeps the exact tables within their bound. Call it once a batch. */
  trim(now: number): void {
    const oldest = now - this.#windowMs - this.#windowMs / GENERATIONS;
    this.#generations = this.#generations.filter((generation) => generation.since > oldest);
    let exact = this.size;
    for (const generation of this.#generations) {
      if (exact <= this.#exactIdsMax) return;
      if (generation.ids === null || generation.filter !== null) continue;
      exact -= generation.ids.size;
      generation.filter = new IdFilter(generation.ids);
      generation.ids = null;
    }
  }
}
