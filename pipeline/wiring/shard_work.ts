// Work on partitions in several shards at once, of which some may be away. A shard does one piece of work
// at a time: a partition that is being released must not be taken up again before that has ended.
import { setTimeout as sleep } from 'node:timers/promises';

/** How long a call waits for the slowest shard, in milliseconds. */
const PATIENCE_MS = 2000;

export class ShardWork<Shard extends object> {
  readonly #waitsForAll: boolean;
  /** Work that has not ended, by shard. */
  readonly #running = new Map<Shard, Promise<void>>();

  /** @param waitsForAll true to wait as long as it takes: there is one shard, so nothing else could be done */
  constructor(waitsForAll: boolean) {
    this.#waitsForAll = waitsForAll;
  }

  /**
   * Begins work in each shard that is free. Work that takes longer than PATIENCE_MS goes on without the caller.
   * @returns the items of the shards that have done it; the caller asks for the others again
   * @throws what the work throws within PATIENCE_MS
   */
  async run<Item>(
    items: ReadonlyMap<Shard, readonly Item[]>,
    work: (shard: Shard, items: readonly Item[]) => Promise<void>,
  ): Promise<Item[]> {
    const done: Item[] = [];
    const free = [...items].filter(([shard]) => !this.#running.has(shard));
    const all = Promise.all(
      free.map(async ([shard, of]) => {
        await this.#begin(shard, work(shard, of));
        done.push(...of);
      }),
    );
    if (this.#waitsForAll) await all;
    else {
      all.catch(() => undefined);
      const stop = new AbortController();
      const late = sleep(PATIENCE_MS, undefined, { signal: stop.signal }).catch(() => undefined);
      await Promise.race([all, late]).finally(() => {
        stop.abort();
      });
    }
    // What ends later must not change the answer.
    return [...done];
  }

  #begin(shard: Shard, work: Promise<void>): Promise<void> {
    const running = work.finally(() => {
      this.#running.delete(shard);
    });
    this.#running.set(shard, running);
    return running;
  }
}
