// The lag of a worker as one number: an upper bound on the age of the oldest event that has not
// landed.

/** The state of a worker at one moment. Times are milliseconds since the epoch. */
export interface Moment {
  now: number;
  /** True if events of the log have not landed. */
  behind: boolean;
  /** received_at of the newest event that has landed; 0 before the first. */
  landed_at: number;
}

/**
 * Computes the lag. The oldest event that has not landed is younger than the newest that has, and
 * younger than the last moment at which everything had landed.
 */
export class Lag {
  #caughtUpAt = 0;

  /** Returns the lag in seconds: 0 if nothing waits, and before the first event has landed. */
  seconds({ now, behind, landed_at }: Moment): number {
    if (landed_at === 0) return 0;
    // After an hour without events, the newest landed event is an hour old, but the next event will
    // not be.
    if (!behind) this.#caughtUpAt = now;
    return behind ? Math.max(0, now - Math.max(landed_at, this.#caughtUpAt)) / 1000 : 0;
  }
}
