// Shares out slots for slow work fairly between organizations. A caller waits for a slot, runs its
// task in it and gives it back. Guarantees: no organization holds more slots than its bound, and
// all together no more than the total. Waiting organizations take turns, and within one the first
// to ask is the first served, so ten thousand waiting tasks of one organization delay another by
// one turn. A wait can be aborted.

export interface SlotBounds {
  /** Slots of all organizations together. */
  totalMax: number;
  /** Slots of one organization. */
  orgMax: number;
}

export class FairSlots {
  readonly #bounds: SlotBounds;
  /** Waiting tasks by organization, in the order of their turns. */
  readonly #waiting = new Map<string, (() => void)[]>();
  readonly #taken = new Map<string, number>();
  #total = 0;

  constructor(bounds: SlotBounds) {
    this.#bounds = bounds;
  }

  /** Number of slots in use. */
  get taken(): number {
    return this.#total;
  }

  /**
   * Runs a task in a slot of the organization. @throws the signal's reason when it is aborted
   * before a slot was free
   */
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
      // The next turn of this organization comes after all others'.
      this.#waiting.delete(org_id);
      if (line.length > 0) this.#waiting.set(org_id, line);
      if (next === undefined) continue;
      this.#taken.set(org_id, own + 1);
      this.#total++;
      next();
    }
    // An organization may have room for more than one task.
    if (this.#total < this.#bounds.totalMax && this.#servable()) this.#serve();
  }

  #servable(): boolean {
    return [...this.#waiting.keys()].some((org_id) => (this.#taken.get(org_id) ?? 0) < this.#bounds.orgMax);
  }
}
