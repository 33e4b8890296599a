// Work on one key, one after the other: writers of one process that each need the revision of the one before wait here
// instead of losing against each other.

/** Work that waits for one key; more is refused. */
const WAITING_MAX = 500;

export class Turns {
  /** Per key: when the last work that was given ends, and how much of it has not ended. */
  readonly #last = new Map<string, { ended: Promise<unknown>; waiting: number }>();

  /** Runs work when all that was given before for this key has ended, however that went. @throws what the work throws; Error when too much waits */
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
