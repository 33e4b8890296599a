// How much of a worker's time each org has taken for its judges: an account that fills with time and is emptied by use, so that no
// org's rules hold up the traces of the others. Times are milliseconds of a clock that only rises.

/** What an org may take at once, and of every millisecond that passes. */
const BURST_MS = 10_000;
const SHARE = 0.5;
/** Orgs with an account that is not full; the rest need none. */
const ACCOUNTS_MAX = 10_000;

export class OrgTime {
  /** What an org has taken, as of a time. */
  readonly #taken = new Map<string, { ms: number; at: number }>();

  /** Whether an org has nothing left now. */
  isSpent(org_id: string, now: number): boolean {
    const taken = this.#taken.get(org_id);
    return taken !== undefined && left(taken, now) > BURST_MS;
  }

  spend(org_id: string, ms: number, now: number): void {
    const taken = this.#taken.get(org_id);
    if (taken === undefined && this.#taken.size >= ACCOUNTS_MAX) this.#forget(now);
    this.#taken.set(org_id, { ms: (taken === undefined ? 0 : left(taken, now)) + ms, at: now });
  }

  #forget(now: number): void {
    for (const [org_id, taken] of this.#taken) if (left(taken, now) <= 0) this.#taken.delete(org_id);
    if (this.#taken.size >= ACCOUNTS_MAX) this.#taken.clear();
  }
}

/** What is left of what was taken, after so much time. */
const left = ({ ms, at }: { ms: number; at: number }, now: number): number => Math.max(0, ms - (now - at) * SHARE);
