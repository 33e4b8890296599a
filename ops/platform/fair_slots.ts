// Places for slow work, shared out fairly. In: who wants one. Out: a place, and what gives it back. Guarantees: no org holds more than its
// share, all together no more than the whole; of those that wait, orgs take turns, and within an org the first comes first, so that
// an org with ten thousand waiting delays another by one turn. Whoever waits can be aborted.

export interface SlotBounds {
  /** Places of all orgs together. */
  totalMax: number;
  /** Places of one org. */
  orgMax: number;
}

export class FairSlots {
  readonly #bounds: SlotBounds;
  /** In the order of their turns. */
  readonly #waiting = new Map<string, (() => void)[]>();
  readonly #taken = new Map<string, number>();
  #total = 0;

  constructor(bounds: SlotBounds) {
    this.#bounds = bounds;
  }

  /** Places that are taken. */
  get taken(): number {
    return this.#total;
  }

  /** Runs a task in a place of the org. @throws the signal's reason when it is aborted before a place was free */
  async run<T>(org_id: string, signal: AbortSignal, task: () => Promise<T>): Promise<T> {
    await this.#take(org_id, signal);
    try {
      return await task();
    } finally {
      this.#give(org_id);
    }
  }

  #take(org_id: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const line = this.#waiting.get(org_id) ?? [];
    this.#waiting.set(org_id, line);
    return new Promise((resolve, reject) => {
      const abort = () => {
        line.splice(line.indexOf(taken), 1);
        if (line.length === 0 && this.#waiting.get(org_id) === line) this.#waiting.delete(org_id);
        reject(signal.reason as Error);
      };
      const taken = () => {
        signal.removeEventListener('abort', abort);
        resolve();
      };
      signal.addEventListener('abort', abort, { once: true });
      line.push(taken);
      this.#serve();
    });
  }

  #give(org_id: string): void {
    const left = (this.#taken.get(org_id) ?? 1) - 1;
    if (left === 0) this.#taken.delete(org_id);
    else this.#taken.set(org_id, left);
    this.#total--;
    this.#serve();
  }

  #serve(): void {
    for (const org_id of [...this.#waiting.keys()]) {
      if (this.#total >= this.#bounds.totalMax) return;
      const own = this.#taken.get(org_id) ?? 0;
      if (own >= this.#bounds.orgMax) continue;
      const line = this.#waiting.get(org_id) ?? [];
      const next = line.shift();
      // Its next turn is after all others'.
      this.#waiting.delete(org_id);
      if (line.length > 0) this.#waiting.set(org_id, line);
      if (next === undefined) continue;
      this.#taken.set(org_id, own + 1);
      this.#total++;
      next();
    }
    // An org may have room for more than one.
    if (this.#total < this.#bounds.totalMax && this.#servable()) this.#serve();
  }

  #servable(): boolean {
    return [...this.#waiting.keys()].some((org_id) => (this.#taken.get(org_id) ?? 0) < this.#bounds.orgMax);
  }
}
