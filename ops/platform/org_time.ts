// Accounts for the time of a process that each organization uses for its judges or patterns, so
// that one organization's rules do not hold up the others. An account fills as time passes and is
// drained by use. Times are milliseconds of a monotonic clock.

/**
 * Maximum time that an organization may use at once, and the share of each passing millisecond that
 * refills its account by default.
 */
const BURST_MS = 2000;
const SHARE = 0.5;
/** Maximum number of accounts. Only organizations whose account is not full need one. */
const ACCOUNTS_MAX = 10_000;

export class OrgTime {
  /** Time that an organization has used, as of an instant. */
  readonly #taken = new Map<string, { ms: number; at: number }>();
  readonly #share: number;

  /** @param share the part of every millisecond that refills an account, 0 to 1 */
  constructor(share = SHARE) {
    this.#share = share;
  }

  /** Returns true when the organization has no time left now. */
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

/** Returns what remains of the used time after the time that has passed since. */
const left = ({ ms, at }: { ms: number; at: number }, now: number, share: number): number =>
  Math.max(0, ms - (now - at) * share);
