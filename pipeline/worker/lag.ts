// How late the pipeline is, as one number for operators.

/** What is known at a moment; milliseconds since the epoch. */
export interface Moment {
  now: number;
  /** Something of the log has not landed. */
  behind: boolean;
  /** received_at of the newest event that has landed; 0 before the first. */
  landed_at: number;
}

/** Age of the oldest event that has not landed, from above: it came after the newest that has, and after all had landed last. */
export class Lag {
  #caughtUpAt = 0;

  /** Seconds; 0 where nothing waits, and before anything has landed, when nothing is known. */
  seconds({ now, behind, landed_at }: Moment): number {
    if (landed_at === 0) return 0;
    // After an hour without events the newest that has landed is an hour old, and the next is not.
    if (!behind) this.#caughtUpAt = now;
    return behind ? Math.max(0, now - Math.max(landed_at, this.#caughtUpAt)) / 1000 : 0;
  }
}
