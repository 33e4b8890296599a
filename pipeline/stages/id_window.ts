// The ids of the events seen within the dedupe window of one partition.
//
// Ids are exact while they fit: 64-bit ids stand in open-addressing tables by generation (a sixth
// of the window), and whole tables are dropped when they are too old. Beyond the bound, the ids
// added first move to Bloom filters. An id that the filters do not know is new for certain; an id
// that they may know must be looked up in the store. An id stays exact until half as many ids as
// may be exact were added after it, so every id in a filter has landed long ago, and the store can
// answer for it.
//
// Clients choose events and with them their ids. Each window therefore scrambles ids with secrets
// of its own, so that no client can choose ids that collide in a table or a filter. The secrets
// need not be stored: a new owner fills its window from the ids in the store.
import { randomInt } from 'node:crypto';

const GENERATIONS = 6;
const FILTER_BITS_PER_ID = 16;
const FILTER_HASHES = 10;
/** Maximum ids of one filter, which then takes 32 MB. */
const FILTER_IDS_MAX = 16_000_000;
const LOAD_MAX = 0.6;
const SLOTS_MIN = 1024;

/** A keyed permutation of 64-bit ids: three rounds of a Feistel network. Distinct ids stay distinct. */
class Scrambler {
  /**
   * Halves of the id that was scrambled last. They are fields, so that no pair is allocated for
   * each event.
   */
  high = 0;
  low = 0;
  readonly #keys = Int32Array.from({ length: 3 }, () => randomInt(2 ** 32) | 0);
  readonly #factors = Int32Array.from({ length: 3 }, () => randomInt(2 ** 32) | 1);

  scramble(high: number, low: number): void {
    const mixedLow = low ^ this.#round(high, 0);
    const mixedHigh = high ^ this.#round(mixedLow, 1);
    this.high = mixedHigh >>> 0;
    this.low = (mixedLow ^ this.#round(mixedHigh, 2)) >>> 0;
  }

  #round(half: number, index: number): number {
    const factor = this.#factors[index] ?? 1;
    const once = Math.imul(half ^ (this.#keys[index] ?? 0), factor);
    const twice = Math.imul(once ^ (once >>> 15), 0x85ebca6b);
    return twice ^ (twice >>> 16);
  }
}

/** An open-addressing set of 64-bit ids, as pairs of 32-bit halves. */
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

/**
 * A Bloom filter over 64-bit ids. The ids are scrambled already, so their halves serve as the two
 * hash functions.
 */
class IdFilter {
  /** Ids at which its rate of false positives is one in two thousand: (1 - e^(-10 / 16))^10. */
  readonly capacity: number;
  size = 0;
  readonly #bits: Uint32Array;
  readonly #count: number;

  constructor(capacity: number) {
    this.capacity = capacity;
    this.#count = Math.max(64, capacity * FILTER_BITS_PER_ID);
    this.#bits = new Uint32Array(Math.ceil(this.#count / 32));
  }

  get bytes(): number {
    return this.#bits.byteLength;
  }

  add(high: number, low: number): void {
    for (let i = 0; i < FILTER_HASHES; i += 1) this.#set(this.#position(high, low, i));
    this.size += 1;
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

/** The ids received in a sixth of the window. */
class Generation {
  /** Start of its time, in milliseconds. */
  readonly since: number;
  /**
   * The ids added since the last call of `age`, and those of the time between the last two calls.
   */
  #young: IdSet | null = null;
  #old: IdSet | null = null;
  /**
   * All older ids. Every filter but the last is full, and each takes twice as many ids as the one
   * before.
   */
  readonly #filters: IdFilter[] = [];

  constructor(since: number) {
    this.since = since;
  }

  get young(): number {
    return this.#young?.size ?? 0;
  }

  get size(): number {
    return this.young + (this.#old?.size ?? 0);
  }

  get bytes(): number {
    return this.#filters.reduce(
      (sum, filter) => sum + filter.bytes,
      (this.#young?.bytes ?? 0) + (this.#old?.bytes ?? 0),
    );
  }

  get isExact(): boolean {
    return this.#filters.length === 0;
  }

  has(high: number, low: number): boolean {
    return this.#young?.has(high, low) === true || this.#old?.has(high, low) === true;
  }

  mayHave(high: number, low: number): boolean {
    return this.#filters.some((filter) => filter.mayHave(high, low));
  }

  add(high: number, low: number): void {
    this.#young ??= new IdSet(SLOTS_MIN);
    this.#young.add(high, low);
  }

  /**
   * Moves the old ids to the filters, and makes the young ids old.
   *
   * @param least minimum capacity of a new filter: few large filters are quicker to query than many
   * small ones
   */
  age(least: number): void {
    if (this.#old !== null) this.#fold(this.#old, least);
    this.#old = this.#young;
    this.#young = null;
  }

  #fold(ids: IdSet, least: number): void {
    let left = ids.size;
    let filter = this.#filters.at(-1);
    for (const [high, low] of ids.ids()) {
      if (filter === undefined || filter.size >= filter.capacity) {
        filter = new IdFilter(Math.min(FILTER_IDS_MAX, Math.max(left, least, 2 * (filter?.capacity ?? 0))));
        this.#filters.push(filter);
      }
      filter.add(high, low);
      left -= 1;
    }
  }
}

/**
 * `seen`: the id is a repeat. `new`: it is not in the window. `unsure`: it must be looked up in the
 * store.
 */
export type Sighting = 'seen' | 'new' | 'unsure';

/**
 * A window over the ids of one partition. Ids are 16 hex digits (64 bits).
 *
 * An id takes 13 to 27 bytes in the exact tables and 2 to 6 in the filters.
 */
export class IdWindow {
  #generations: Generation[] = [];
  readonly #windowMs: number;
  readonly #exactIdsMax: number;
  readonly #scrambler = new Scrambler();

  /**
   * @param windowMs how long an id is remembered, in milliseconds
   * @param exactIdsMax ids held exactly before those added first move to filters
   */
  constructor(windowMs: number, exactIdsMax: number) {
    this.#windowMs = windowMs;
    this.#exactIdsMax = exactIdsMax;
  }

  /** Number of ids held exactly. */
  get size(): number {
    return this.#generations.reduce((sum, generation) => sum + generation.size, 0);
  }

  get bytes(): number {
    return this.#generations.reduce((sum, generation) => sum + generation.bytes, 0);
  }

  /** True if the window is sure of every id, so that nothing must be looked up. */
  get isExact(): boolean {
    return this.#generations.every((generation) => generation.isExact);
  }

  /** True if the window holds no id, neither exactly nor in a filter. */
  get isEmpty(): boolean {
    return this.#generations.length === 0;
  }

  look(eventHex: string): Sighting {
    return this.lookHalves(Number.parseInt(eventHex.slice(0, 8), 16), Number.parseInt(eventHex.slice(8), 16));
  }

  lookHalves(idHigh: number, idLow: number): Sighting {
    this.#scrambler.scramble(idHigh, idLow);
    const { high, low } = this.#scrambler;
    for (const generation of this.#generations) if (generation.has(high, low)) return 'seen';
    return this.#generations.some((generation) => generation.mayHave(high, low)) ? 'unsure' : 'new';
  }

  /**
   * Remembers an id that was received at a time in milliseconds. Ids of the past, as on takeover,
   * go into the generation of their time.
   */
  add(eventHex: string, receivedAt: number): void {
    this.addHalves(Number.parseInt(eventHex.slice(0, 8), 16), Number.parseInt(eventHex.slice(8), 16), receivedAt);
  }

  addHalves(high: number, low: number, receivedAt: number): void {
    const length = this.#windowMs / GENERATIONS;
    const since = Math.floor(receivedAt / length) * length;
    let generation = this.#generations.find((candidate) => candidate.since === since);
    if (generation === undefined) {
      generation = new Generation(since);
      this.#generations.push(generation);
      this.#generations.sort((a, b) => a.since - b.since);
    }
    this.#scrambler.scramble(high, low);
    generation.add(this.#scrambler.high, this.#scrambler.low);
  }

  /**
   * Forgets what is older than the window.
   *
   * @param now time of the events being read, not of the clock: a worker that catches up with
   * yesterday's log needs the ids of the day before
   */
  forget(now: number): void {
    const oldest = now - this.#windowMs - this.#windowMs / GENERATIONS;
    if (this.#generations.every((generation) => generation.since > oldest)) return;
    this.#generations = this.#generations.filter((generation) => generation.since > oldest);
  }

  /** Keeps the exact tables within their bound. Call it once a batch. */
  trim(): void {
    const young = this.#generations.reduce((sum, generation) => sum + generation.young, 0);
    if (young <= this.#exactIdsMax / 2) return;
    for (const generation of this.#generations) generation.age(Math.ceil(this.#exactIdsMax / 2));
  }
}
