// Runs the work on one key in turns: writers in one process that each need the previous writer's
// revision wait here instead of losing against each other.

/** Maximum number of waiting tasks for one key; further ones are refused. */
const WAITING_MAX = 500;

export class Turns {
  /** By key: when its newest task ends, and how many of its tasks have not ended. */
  readonly #last = new Map<string, { ended: Promise<unknown>; waiting: number }>();

  /**
   * Runs work once all earlier work for this key has ended, whatever its outcome.
   * @throws what the work throws; Error when too many tasks wait for the key
   */
  async take<R>(key: string, work: () => Promise<R>): Promise<R> {
    const line = this.#last.get(key) ?? { ended: Promise.resolve<unknown>(undefined), waiting: 0 };
    if (line.waiting >= WAITING_MAX) throw new Error('too many changes of one record wait in this process');
    const mine = line.ended.then(work);
    line.ended = mine.catch(() => undefined);
    line.waiting++;
    this.#last.set(key, line);
    try {
      return await mine;
    } finally {
      line.waiting--;
      if (line.waiting === 0) this.#last.delete(key);
    }
  }
}
