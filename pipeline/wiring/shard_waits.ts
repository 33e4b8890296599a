// Work of ownership in several shards at once, of which some may be away.

/** How long all wait for the slowest shard, in milliseconds. */
const PATIENCE_MS = 2000;

/** A shard has not finished in time. It goes on; the next call waits for it again. */
export class ShardSlow extends Error {}

export class ShardWaits<Shard extends object> {
  readonly #patient: boolean;
  /** What each shard is doing. */
  readonly #running = new Map<Shard, Promise<void>>();

  /** @param patient true to wait for as long as it takes: there is nothing else to do */
  constructor(patient: boolean) {
    this.#patient = patient;
  }

  /**
   * Starts work in each shard that does not work for an earlier call, and waits for all of them.
   * @throws what the work throws; ShardSlow if a shard takes longer than PATIENCE_MS
   */
  async all<Item>(
    items: ReadonlyMap<Shard, Item[]>,
    work: (shard: Shard, items: Item[]) => Promise<void>,
  ): Promise<void> {
    // An earlier call had fewer items perhaps, so the caller has to come again.
    let isEarlier = false;
    const running = [...items].map(([shard, of]) => {
      const earlier = this.#running.get(shard);
      isEarlier ||= earlier !== undefined;
      return earlier ?? this.#start(shard, work(shard, of));
    });
    const all = Promise.all(running).then(() => {
      if (isEarlier) throw new ShardSlow('a shard has finished what an earlier call asked for');
    });
    if (this.#patient) return all;
    all.catch(() => undefined);
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      late.reject(new ShardSlow(`a shard takes longer than ${PATIENCE_MS} ms`));
    }, PATIENCE_MS);
    try {
      await Promise.race([all, late.promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  #start(shard: Shard, work: Promise<void>): Promise<void> {
    const running = work.finally(() => {
      this.#running.delete(shard);
    });
    this.#running.set(shard, running);
    return running;
  }
}
