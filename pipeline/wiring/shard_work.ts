// Work on partitions in several shards at once, of which some may be away. A shard does one piece of work
// at a time: a partition that is being released must not be taken up again before that has ended.
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * How long a call waits for the slowest shard, in milliseconds. The worker looks for dead workers and claims their
 * partitions between two calls.
 */
const PATIENCE_MS = 250;
/** The same for work that is not asked for again, because the worker ends. */
const LAST_PATIENCE_MS = 5000;

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
   * @param isLast true if the caller does not ask again: waits for LAST_PATIENCE_MS, also for shards that are not free
   * @returns the items of the shards that have done it; the caller asks for the others again
   * @throws what the work throws while the caller waits
   */
  async run<Item>(
    items: ReadonlyMap<Shard, readonly Item[]>,
    work: (shard: Shard, items: readonly Item[]) => Promise<void>,
    isLast = false,
  ): Promise<Item[]> {
    const done: Item[] = [];
    const free = [...items].filter(([shard]) => isLast || !this.#running.has(shard));
    const all = Promise.all(
      free.map(async ([shard, of]) => {
        if (isLast) await this.#running.get(shard)?.catch(() => undefined);
        await this.#begin(shard, work(shard, of));
        done.push(...of);
      }),
    );
    if (this.#waitsForAll) await all;
    else {
      all.catch(() => undefined);
      const stop = new AbortController();
      const late = sleep(isLast ? LAST_PATIENCE_MS : PATIENCE_MS, undefined, { signal: stop.signal }).catch(
        () => undefined,
      );
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
