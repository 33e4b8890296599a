// The erasure store of all shards. A trace is in one shard, but its scores and incidents are in the
// first one, and its replays may be in any. Each shard therefore records the traces that all shards
// have found, and the days and numbers of rows that are its own. The methods are those of the store
// of one shard; with a single shard the statements are the same. Guarantees: every step may be
// repeated after a crash at any point, because a recorded trace stays recorded until the job is
// forgotten.
import { type ErasureStore, type EraseMatch, REPLAYS_DEEP_MAX, type Scope } from './erasure.ts';

/** Traces that one statement copies to another shard; an id has at most 128 characters. */
const COPIED_AT_ONCE = 10_000;

export class ErasureOfShards {
  readonly #shards: readonly ErasureStore[];
  readonly #first: ErasureStore;
  readonly #others: readonly ErasureStore[];

  /** @throws Error without a shard */
  constructor(shards: readonly ErasureStore[]) {
    const [first, ...others] = shards;
    if (first === undefined) throw new Error('the store has no shard');
    this.#shards = shards;
    this.#first = first;
    this.#others = others;
  }

  /**
   * Records in every shard the traces of all shards that contain a match and their replays, and in
   * each shard the days of its own spans and the number of its own rows. May be repeated.
   */
  async collect(scope: Scope, match: EraseMatch): Promise<void> {
    for (const shard of this.#shards) await shard.collectMatches(scope, match);
    await this.#collectReplays(scope);
    for (const shard of this.#shards) await shard.collectCounts(scope);
  }

  async #collectReplays(scope: Scope): Promise<void> {
    await this.#spread(scope);
    for (let depth = 0; depth < REPLAYS_DEEP_MAX; depth++) {
      for (const shard of this.#shards) await shard.collectReplays(scope);
      if (!(await this.#spread(scope))) return;
    }
  }

  /**
   * Copies the recorded traces of each shard to all others.
   * @returns true if a shard did not have all of them
   */
  async #spread(scope: Scope): Promise<boolean> {
    if (this.#others.length === 0) return false;
    const had = await Promise.all(this.#shards.map((shard) => shard.traceCount(scope)));
    for (const other of this.#others) await copy(other, this.#first, scope);
    for (const other of this.#others) await copy(this.#first, other, scope);
    const all = await this.#first.traceCount(scope);
    return had.some((count) => count < all);
  }

  /** Returns the number of rows of each table, in all shards, before any was deleted. */
  async found(scope: Scope): Promise<Map<string, number>> {
    return sumOf(this.#shards, (shard) => shard.found(scope));
  }

  traceCount(scope: Scope): Promise<number> {
    return this.#first.traceCount(scope);
  }

  /** Returns a page of the recorded traces, in the order of their ids, after the given one. */
  traces(scope: Scope, after: string, limit: number): Promise<string[]> {
    return this.#first.traces(scope, after, limit);
  }

  /** Returns those of the given traces that are recorded. */
  listed(scope: Scope, traceIds: readonly string[]): Promise<Set<string>> {
    return this.#first.listed(scope, traceIds);
  }

  /**
   * Returns errors of the recorded traces that incidents may show, by cluster.
   * @param limit maximum errors of a shard
   */
  async samples(scope: Scope, limit: number): Promise<{ cluster_id: string; sample: string }[]> {
    const samples: { cluster_id: string; sample: string }[] = [];
    for (const shard of this.#shards) samples.push(...(await shard.samples(scope, limit)));
    return samples;
  }

  /** Empties the samples of incidents that are errors of the recorded traces. */
  async emptySamples(scope: Scope, signal: AbortSignal): Promise<void> {
    for (const shard of this.#shards) await shard.emptySamples(scope, signal);
  }

  /** Deletes the rows of the recorded traces; see ErasureStore. */
  async erase(scope: Scope, marks: readonly number[] | null, signal: AbortSignal): Promise<void> {
    for (const shard of this.#shards) await shard.erase(scope, marks, signal);
  }

  /** Returns the number of rows that are left by table, in all shards. */
  async remaining(scope: Scope, marks: readonly number[]): Promise<Map<string, number>> {
    return sumOf(this.#shards, (shard) => shard.remaining(scope, marks));
  }

  /** Deletes the records of a job in every shard. */
  async forget(job_id: string): Promise<void> {
    for (const shard of this.#shards) await shard.forget(job_id);
  }

  /** Returns the jobs that have records in any shard. */
  async jobs(): Promise<string[]> {
    const jobs = new Set<string>();
    for (const shard of this.#shards) for (const job_id of await shard.jobs()) jobs.add(job_id);
    return [...jobs];
  }
}

/** Records the traces of one shard in another. */
async function copy(from: ErasureStore, to: ErasureStore, scope: Scope): Promise<void> {
  for (let after = ''; ;) {
    const page = await from.traces(scope, after, COPIED_AT_ONCE);
    const last = page.at(-1);
    if (last === undefined) return;
    await to.add(scope, page);
    after = last;
  }
}

/** Returns the sums, by name, of what each shard counts. */
export async function sumOf<Shard>(
  shards: readonly Shard[],
  countIn: (shard: Shard) => Promise<ReadonlyMap<string, number>>,
): Promise<Map<string, number>> {
  const sums = new Map<string, number>();
  for (const shard of shards)
    for (const [name, count] of await countIn(shard)) sums.set(name, (sums.get(name) ?? 0) + count);
  return sums;
}
