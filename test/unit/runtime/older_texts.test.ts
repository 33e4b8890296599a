// Older texts and the sweep against a model of the engine: parts are merged, renamed and emptied,
// mutations run late, and leaders are paused, killed and replaced, at every point and in any order.
import { describe, expect, it } from 'vitest';
import { createLogger } from '../../../ops/platform/logger.ts';
import {
  chooseOlder,
  type NumberedOlderPart,
  type Numbers,
  type OlderPart,
  type OlderTextStore,
  OlderTexts,
} from '../../../pipeline/landing/older_texts.ts';
import { contentOf, type Part } from '../../../pipeline/landing/part_names.ts';
import { PlaceSweep, type PlaceStore } from '../../../pipeline/landing/place_sweep.ts';
import { seeded } from '../../support/store.ts';

const MIB = 1024 * 1024;

interface Row {
  id: number;
  dl: number;
  doc: bigint;
}

interface Mutation {
  number: number;
  /** Contents of the parts that it has yet to mutate. */
  todo: Set<string>;
  /** Called when the engine begins with a part; the result is applied when it ends. */
  begin(name: string): (rows: readonly Row[]) => Row[];
  ofMover: boolean;
}

/** Tables, mutations and fence as the engine keeps them. */
class Engine {
  readonly parts = new Map<string, Row[]>();
  /** Ids of the texts whose words are posted at a number. */
  readonly postings = new Map<bigint, number[]>();
  readonly mutations: Mutation[] = [];
  /** Part that is being mutated, and what will become of it. */
  #mutating: { name: string; mutation: Mutation; change: (rows: readonly Row[]) => Row[] } | null = null;
  #block = 0;
  fence = 0;
  swept = 0;
  readonly #random: () => number;

  constructor(random: () => number) {
    this.#random = random;
  }

  pick<T>(items: readonly T[]): T | undefined {
    return items[Math.floor(this.#random() * items.length)];
  }

  insert(rows: Row[]): void {
    this.#block += 1;
    this.parts.set(`w_${this.#block}_${this.#block}_0`, rows);
  }

  mutate(begin: Mutation['begin'], ofMover = false): void {
    this.#block += 1;
    this.mutations.push({ number: this.#block, todo: new Set(this.#contents()), begin, ofMover });
  }

  /** Begins or ends the mutation of a part. */
  work(): void {
    if (this.#mutating !== null) {
      const { name, mutation, change } = this.#mutating;
      const rows = change(this.parts.get(name) ?? []);
      this.parts.delete(name);
      this.parts.set(`${contentOf(name)}_${mutation.number}`, rows);
      mutation.todo.delete(contentOf(name));
      this.#mutating = null;
    }
    while (this.mutations[0]?.todo.size === 0) this.mutations.shift();
    const [mutation] = this.mutations;
    if (mutation === undefined) return;
    const content = this.pick([...mutation.todo]);
    const name = [...this.parts.keys()].find((present) => contentOf(present) === content);
    if (name === undefined) throw new Error('a part with mutations to do is gone');
    this.#mutating = { name, mutation, change: mutation.begin(name) };
  }

  merge(): void {
    const busy = new Set(this.mutations.flatMap(({ todo }) => [...todo]));
    const free = [...this.parts.keys()].filter((name) => !busy.has(contentOf(name)));
    const [first, second] = free;
    if (first === undefined || second === undefined) return;
    const rows = [...(this.parts.get(first) ?? []), ...(this.parts.get(second) ?? [])];
    this.parts.delete(first);
    this.parts.delete(second);
    this.#block += 1;
    this.parts.set(
      `w_${this.#block}_${this.#block}_1`,
      rows.toSorted((a, b) => (a.id % 7) - (b.id % 7)),
    );
  }

  #contents(): string[] {
    return [...this.parts.keys()].map(contentOf);
  }

  rows(): Row[] {
    return [...this.parts.values()].flat();
  }
}

const isOlder = ({ doc, dl }: Row): boolean => doc === 0n && dl > 0;

/** What a worker sees of the engine; every call may be held up before it arrives. */
class Store implements OlderTextStore, PlaceStore {
  readonly #engine: Engine;
  readonly #arrive: () => Promise<void>;

  constructor(engine: Engine, arrive: () => Promise<void>) {
    this.#engine = engine;
    this.#arrive = arrive;
  }

  async olderParts(): Promise<OlderPart[]> {
    await this.#arrive();
    return [...this.#engine.parts].flatMap(([name, rows]) => {
      const texts = rows.filter(isOlder).length;
      // Slices have two rows.
      return texts === 0 ? [] : [{ name, rows: rows.length, bytes: rows.length * 128 * MIB, texts, merging: false }];
    });
  }
  async parts(): Promise<Part[]> {
    await this.#arrive();
    return [...this.#engine.parts].map(([name, rows]) => ({ name, rows: rows.length }));
  }
  async slices({ name, first }: NumberedOlderPart, sliceRows: number): Promise<Numbers[]> {
    await this.#arrive();
    const slices = new Map<number, Numbers>();
    for (const [index, row] of (this.#engine.parts.get(name) ?? []).entries()) {
      if (!isOlder(row)) continue;
      const number = first + BigInt(index);
      const of = Math.floor(index / sliceRows);
      slices.set(of, { from: slices.get(of)?.from ?? number, until: number + 1n });
    }
    return [...slices.values()];
  }
  async writePostings({ name, first }: NumberedOlderPart, { from, until }: Numbers, epoch: number): Promise<number> {
    await this.#arrive();
    if (this.#engine.fence !== epoch) return 0;
    let written = 0;
    for (const [index, row] of (this.#engine.parts.get(name) ?? []).entries()) {
      const number = first + BigInt(index);
      if (!isOlder(row) || number < from || number >= until) continue;
      this.#engine.postings.set(number, [...(this.#engine.postings.get(number) ?? []), row.id]);
      written += 1;
    }
    return written;
  }
  async setNumbers(parts: readonly NumberedOlderPart[], epoch: number): Promise<void> {
    await this.#arrive();
    this.#engine.mutate((name) => {
      const part = parts.find((of) => of.name === name);
      if (part === undefined || this.#engine.fence !== epoch) return (rows) => [...rows];
      return (rows) => rows.map((row, index) => (isOlder(row) ? { ...row, doc: part.first + BigInt(index) } : row));
    }, true);
  }
  async numbered({ from, until }: Numbers): Promise<number> {
    await this.#arrive();
    return this.#engine.rows().filter(({ doc }) => doc >= from && doc < until).length;
  }
  async settled(): Promise<boolean> {
    await this.#arrive();
    return !this.#engine.mutations.some(({ ofMover }) => ofMover);
  }
  async isNewest(epoch: number): Promise<boolean> {
    await this.#arrive();
    return this.#engine.fence === epoch;
  }
  async sweptEpoch(): Promise<number> {
    await this.#arrive();
    return this.#engine.swept;
  }
  async unsweptSegments(from: bigint, until: bigint): Promise<bigint[]> {
    await this.#arrive();
    const segments = new Set([...this.#engine.postings.keys()].map((number) => number >> 16n));
    return [...segments].filter((segment) => segment >= from && segment < until);
  }
  async orphaned(segments: readonly bigint[]): Promise<bigint[]> {
    await this.#arrive();
    return segments.filter((segment) => this.#orphans().some((number) => number >> 16n === segment));
  }
  async documents(segments: readonly bigint[]): Promise<number> {
    await this.#arrive();
    return this.#documents(segments);
  }
  async removeOrphans(segments: readonly bigint[], documents: number): Promise<void> {
    await this.#arrive();
    if (this.#documents(segments) !== documents) return;
    for (const number of this.#orphans()) if (segments.includes(number >> 16n)) this.#engine.postings.delete(number);
  }
  async writeSwept(epoch: number): Promise<void> {
    await this.#arrive();
    this.#engine.swept = Math.max(this.#engine.swept, epoch);
  }
  #documents(segments: readonly bigint[]): number {
    return this.#engine.rows().filter(({ doc }) => doc !== 0n && segments.includes(doc >> 16n)).length;
  }
  #orphans(): bigint[] {
    const documents = new Set(this.#engine.rows().map(({ doc }) => doc));
    return [...this.#engine.postings.keys()].filter((number) => !documents.has(number));
  }
}

/** A leader that works until it is fenced off; `died` keeps its calls from ever arriving. */
async function lead(engine: Engine, arrive: () => Promise<void>, isDone: () => boolean): Promise<void> {
  const logger = createLogger('test', 'silent');
  const store = new Store(engine, arrive);
  let now = 0;
  const older = new OlderTexts({
    store,
    workerId: 'w',
    logger,
    sync: () => Promise.resolve(),
    now: () => (now += 500),
  });
  const works = [new PlaceSweep(store, logger), older];
  for (let epoch = 0; !isDone();) {
    if (epoch === 0) {
      await arrive();
      epoch = engine.fence += 1;
      for (const work of works) work.begin(epoch);
    }
    await arrive();
    for (const work of works) {
      const progress = await work.step().catch(() => work.fail());
      if (progress === 'idle') continue;
      if (progress === 'ended') {
        if (engine.fence > epoch) return;
        epoch = 0;
      }
      break;
    }
  }
}

describe('older texts', () => {
  it.each(Array.from({ length: 150 }, (_, seed) => seed))(
    'are numbered once each, with all of their postings and no others (seed %i)',
    async (seed) => {
      const random = seeded(seed);
      const engine = new Engine(random);
      const waiting: { leader: number; arrive: () => void }[] = [];
      let leaders = 0;
      let done = false;
      const dead = new Set<number>();
      const start = (): void => {
        leaders += 1;
        const leader = leaders;
        void lead(
          engine,
          () => new Promise((arrive) => void waiting.push({ leader, arrive })),
          () => done,
        );
      };
      /** Lets one of the held-up calls arrive. */
      const arrive = async (): Promise<void> => {
        const next = engine.pick(waiting.filter(({ leader }) => !dead.has(leader)));
        if (next === undefined) return;
        waiting.splice(waiting.indexOf(next), 1);
        next.arrive();
        await new Promise(setImmediate);
      };
      // Half of the engines hardly ever get to their mutations.
      const mutating = 0.1 + (random() < 0.5 ? 0.01 : 0.2);
      let id = 0;
      const erasedUnnumbered = new Set<number>();
      const insert = (): void => {
        engine.insert(
          Array.from({ length: 1 + Math.floor(random() * 6) }, () => ({
            id: ++id,
            dl: random() < 0.8 ? 5 : 0,
            doc: 0n,
          })),
        );
      };
      const erase = (): void => {
        const share = Math.floor(random() * 9);
        engine.mutate(() => (rows) => {
          const [kept, erased] = [
            rows.filter((row) => row.id % 9 !== share),
            rows.filter((row) => row.id % 9 === share),
          ];
          for (const row of erased) if (row.doc === 0n) erasedUnnumbered.add(row.id);
          return kept;
        });
      };
      insert();
      insert();
      start();
      for (let turn = 0; turn < 400; turn += 1) {
        const chance = random();
        if (chance < 0.02) insert();
        else if (chance < 0.04) engine.merge();
        else if (chance < 0.07) engine.mutate(() => (rows) => [...rows]);
        else if (chance < 0.08) erase();
        else if (chance < 0.09) start();
        else if (chance < 0.1) dead.add(leaders);
        else if (chance < mutating) engine.work();
        else await arrive();
      }
      // The last leader does the rest; a paused one may wake up at any time.
      start();
      for (let turn = 0; turn < 1500; turn += 1) {
        engine.work();
        await arrive();
      }
      // Another epoch sweeps what the last one left.
      start();
      for (let turn = 0; turn < 1500; turn += 1) {
        engine.work();
        await arrive();
      }
      done = true;
      const rows = engine.rows().filter(({ dl }) => dl > 0);
      expect(rows.filter(({ doc }) => doc === 0n)).toEqual([]);
      expect(rows.map(({ doc }) => engine.postings.get(doc))).toEqual(rows.map((row) => [row.id]));
      expect([...engine.postings.values()].flat().filter((posted) => erasedUnnumbered.has(posted))).toEqual([]);
      expect(engine.rows().filter(({ dl, doc }) => dl === 0 && doc !== 0n)).toEqual([]);
    },
  );
});

describe('the parts of a batch', () => {
  const part = (rows: number, merging = false): OlderPart => ({
    name: `w_${rows}_1_0`,
    rows,
    bytes: 1,
    texts: 1,
    merging,
  });

  it.each([
    ['one that is larger than a batch', [part(3_000_000), part(1)], [0]],
    ['as many as fit, and the one with which they are enough', [part(500_000), part(500_000), part(1)], [0, 1]],
    ['none that is being merged', [part(5, true), part(6)], [1]],
    ['a hundred at most', Array.from({ length: 200 }, () => part(1)), Array.from({ length: 100 }, (_, index) => index)],
  ])('are %s', (_what, parts, chosen) => {
    expect(chooseOlder(parts)).toEqual(chosen.map((index) => parts[index]));
  });
});
