// How much of a process's time each org has taken for its judges or patterns: an account that fills with time and is emptied by use, so
// that what one org has written does not hold up the others. Times are milliseconds of a clock that only rises.

/** What an org may take at once, and of every millisecond that passes unless its owner says otherwise. */
const BURST_MS = 2000;
const SHARE = 0.5;
/** Orgs with an account that is not full; the rest need none. */
const ACCOUNTS_MAX = 10_000;

export class OrgTime {
  /** What an org has taken, as of a time. */
  readonly #taken = new Map<string, { ms: number; at: number }>();
  readonly #share: number;

  /** @param share of every millisecond that an org may take, 0 to 1 */
  constructor(share = SHARE) {
    this.#share = share;
  }

  /** Whether an org has nothing left now. */
  isSpent(org_id: string, now: number): boolean {
    const taken = this.#taken.get(org_id);
    return taken !== undefined && left(taken, now, this.#share) > BURST_MS;
  }

  spend(org_id: string, ms: number, now: number): void {
    const taken = this.#taken.get(org_id);
    if (taken === undefined && this.#taken.size >= ACCOUNTS_MAX) this.#forget(now);
    this.#taken.set(org_id, { ms: (taken === undefined ? 0 : left(taken, now, this.#share)) + ms, at: now });
  }

  #forget(now: number): void {
    for (const [org_id, taken] of this.#taken) if (left(taken, now, this.#share) <= 0) this.#taken.delete(org_id);
    if (this.#taken.size >= ACCOUNTS_MAX) this.#taken.clear();
  }
}

/** What is left of what was taken, after so much time. */
const left = ({ ms, at }: { ms: number; at: number }, now: number, share: number): number =>
  Math.max(0, ms - (now - at) * share);
