// The running queries of analysts in this process: bounds them per organization and in all, and
// cancels those of an analyst. Queries past a bound wait for a moment, since a dashboard sends the
// queries of all its panels at once.

/**
 * Maximum concurrent queries in this process, of one organization and in all. The engine bounds all
 * processes together (sql/analysts/org_views.ts).
 */
export const RUNNING_ORG_MAX = 4;
export const RUNNING_MAX = 12;
/** Maximum waiting queries of one organization, and their maximum wait in milliseconds. */
export const WAITING_ORG_MAX = 32;
const WAIT_MS_MAX = 20_000;
/** Maximum connections to the engine: one per query, and some for the checks at the start. */
export const CONNECTIONS_MAX = RUNNING_MAX + 4;

export interface Run {
  signal: AbortSignal;
  /** Releases the slot. Must be called once, at the end. */
  leave: () => void;
}

interface Waiting {
  org_id: string;
  user: string;
  /** null when the wait is given up. */
  begin: (run: Run | null) => void;
}

export class Running {
  readonly #ofOrg = new Map<string, number>();
  readonly #ofUser = new Map<string, Set<AbortController>>();
  /** In the order of arrival. */
  readonly #waiting = new Set<Waiting>();
  #all = 0;

  /**
   * Starts a query when there is room; resolves with null if too many queries wait, if it waited
   * too long, or if `gone` aborts because its caller disconnected.
   */
  async enter(org_id: string, user: string, gone: AbortSignal): Promise<Run | null> {
    if (this.#hasRoom(org_id)) return this.#begin(org_id, user);
    if ([...this.#waiting].filter((other) => other.org_id === org_id).length >= WAITING_ORG_MAX) return null;
    return await new Promise((resolve) => {
      const giveUp = () => {
        waiting.begin(null);
      };
      const timer = setTimeout(giveUp, WAIT_MS_MAX);
      const waiting: Waiting = {
        org_id,
        user,
        begin: (run) => {
          clearTimeout(timer);
          gone.removeEventListener('abort', giveUp);
          this.#waiting.delete(waiting);
          resolve(run);
        },
      };
      gone.addEventListener('abort', giveUp);
      this.#waiting.add(waiting);
    });
  }

  /** Cancels every query of a user, waiting ones included. */
  cancel(user: string): void {
    for (const waiting of this.#waiting) if (waiting.user === user) waiting.begin(null);
    for (const abort of this.#ofUser.get(user) ?? []) abort.abort(new Error('the analyst was deleted'));
  }

  /** Cancels all queries. */
  cancelAll(): void {
    for (const waiting of this.#waiting) waiting.begin(null);
    for (const user of [...this.#ofUser.keys()]) this.cancel(user);
  }

  #hasRoom(org_id: string): boolean {
    return this.#all < RUNNING_MAX && this.#runningOf(org_id) < RUNNING_ORG_MAX;
  }

  #begin(org_id: string, user: string): Run {
    const abort = new AbortController();
    const own = this.#ofUser.get(user) ?? new Set();
    this.#ofOrg.set(org_id, (this.#ofOrg.get(org_id) ?? 0) + 1);
    this.#ofUser.set(user, own.add(abort));
    this.#all++;
    return {
      signal: abort.signal,
      leave: () => {
        if (!own.delete(abort)) return;
        if (own.size === 0 && this.#ofUser.get(user) === own) this.#ofUser.delete(user);
        this.#all--;
        const left = (this.#ofOrg.get(org_id) ?? 1) - 1;
        if (left === 0) this.#ofOrg.delete(org_id);
        else this.#ofOrg.set(org_id, left);
        this.#next();
      },
    };
  }

  /**
   * While there is room, starts the waiting query whose organization has the fewest running; of
   * equals, the one that arrived first.
   */
  #next(): void {
    for (;;) {
      let next: Waiting | null = null;
      for (const waiting of this.#waiting)
        if (
          this.#hasRoom(waiting.org_id) &&
          (next === null || this.#runningOf(waiting.org_id) < this.#runningOf(next.org_id))
        )
          next = waiting;
      if (next === null) return;
      next.begin(this.#begin(next.org_id, next.user));
    }
  }

  #runningOf(org_id: string): number {
    return this.#ofOrg.get(org_id) ?? 0;
  }
}
