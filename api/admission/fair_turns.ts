// Fair turns on the event loop for parsing bodies. A process has one event loop: sixty large bodies
// that complete at once would delay every other request until the last of them is parsed. An
// organization may therefore have QUANTUM_BYTES parsed in one turn of the loop, and TIME_SHARE of
// the loop's time while other organizations send too. Further bodies wait in a queue of the
// organization; queues are served in rotation, one quantum a turn.
import type { RequestFacts } from './check.ts';
import { ADMIT, type Decision, reject, type Settled } from './decision.ts';

/**
 * Bytes that one organization may have parsed in one turn of the loop: a few milliseconds of work.
 * A larger body has a turn to itself.
 */
export const QUANTUM_BYTES = 256 * 1024;
/** A body that has waited this long is rejected: its response is due within a second. */
export const TURN_WAIT_MS_MAX = 600;
/**
 * Share of the loop's time that an organization may use for parsing while others send too. A valid
 * body costs the log and the store many times what its parsing costs, so only bodies that are
 * expensive to parse and then rejected need more.
 */
export const TIME_SHARE = 1 / 4;
/**
 * Weight of time spent on a body that is rejected: nothing comes of it, and its garbage costs the
 * loop time again. An organization that sends only invalid bodies gets a sixteenth of the loop; one
 * invalid body in ten costs it a quarter of its time.
 */
export const REJECTED_WEIGHT = 4;
/** Milliseconds that an organization may use at once. */
export const BURST_MS = 20;
/** An organization that has sent within this time is protected from the others. */
export const ACTIVE_MS = 1000;
/**
 * While organizations wait for time, their queues are examined at least this often, so that no body
 * is rejected late or waits although the other organizations have stopped sending.
 */
const WAKE_MS_MAX = 50;
/** Maximum number of organizations whose time is counted. Beyond it counting starts over. */
const TIMED_ORGS_MAX = 10_000;
const RETRY_AFTER_SECONDS = 1;

const TOO_LATE = reject(
  'rate_limited',
  'Too many request bytes of this organization wait to be parsed. Retry after the number of seconds in Retry-After.',
  RETRY_AFTER_SECONDS,
);

interface Waiting {
  bytes: number;
  since: number;
  resolve: (decision: Settled) => void;
}

/** Milliseconds that an organization had left at a time. Below 0 the organization has to wait. */
interface Time {
  left: number;
  at: number;
}

export class FairTurns {
  readonly #now: () => number;
  /**
   * Waiting bodies by organization, the longest waiting first; the order of the map is that of the
   * rotation. The bound on bytes in flight bounds them.
   */
  readonly #queues = new Map<string, Waiting[]>();
  /** Bytes of each organization that have been parsed in this turn of the loop. */
  readonly #used = new Map<string, number>();
  readonly #times = new Map<string, Time>();
  /** The organization that sent last, and the last one before it that is another. */
  #newest = { org_id: '', at: -Infinity };
  #other = { org_id: '', at: -Infinity };
  #scheduled = false;
  #wake: NodeJS.Timeout | null = null;

  /** @param now milliseconds of a monotonic clock */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /**
   * Admits a body that may be parsed now. Any other body waits for its turn and is rejected after
   * TURN_WAIT_MS_MAX.
   */
  decide({ org_id, bytes }: Pick<RequestFacts, 'org_id' | 'bytes'>): Decision {
    const now = this.#now();
    this.#see(org_id, now);
    const used = this.#used.get(org_id) ?? 0;
    const queue = this.#queues.get(org_id);
    const isFirst = this.#used.size === 0 && this.#queues.size === 0;
    this.#schedule();
    if (queue === undefined && (isFirst || used + bytes <= QUANTUM_BYTES) && this.#restMs(org_id, now) === 0) {
      this.#used.set(org_id, used + bytes);
      return ADMIT;
    }
    const { promise, resolve } = Promise.withResolvers<Settled>();
    const waiting = { bytes, since: now, resolve };
    if (queue === undefined) this.#queues.set(org_id, [waiting]);
    else queue.push(waiting);
    return { kind: 'wait', decided: promise };
  }

  #see(org_id: string, now: number): void {
    if (this.#newest.org_id !== org_id) {
      const former = this.#other;
      this.#other = this.#newest;
      this.#newest = former;
      this.#newest.org_id = org_id;
    }
    this.#newest.at = now;
  }

  #isAlone(org_id: string, now: number): boolean {
    const other = this.#newest.org_id === org_id ? this.#other : this.#newest;
    return now - other.at > ACTIVE_MS;
  }

  /** Returns the milliseconds until the organization may have a body parsed; 0 when it may now. */
  #restMs(org_id: string, now: number): number {
    const time = this.#times.get(org_id);
    if (time === undefined) return 0;
    const left = time.left + (now - time.at) * TIME_SHARE;
    if (left >= BURST_MS) this.#times.delete(org_id);
    return left >= 0 || this.#isAlone(org_id, now) ? 0 : -left / TIME_SHARE;
  }

  /**
   * Parses a body whose turn it is, and charges the time to the organization.
   * @throws what `work` throws
   */
  timed<T>(org_id: string, work: () => T): T {
    const began = this.#now();
    try {
      const result = work();
      this.#charge(org_id, began, 1);
      return result;
    } catch (error) {
      this.#charge(org_id, began, REJECTED_WEIGHT);
      throw error;
    }
  }

  #charge(org_id: string, began: number, weight: number): void {
    const now = this.#now();
    const time = this.#times.get(org_id) ?? { left: BURST_MS, at: began };
    if (this.#times.size >= TIMED_ORGS_MAX) this.#times.clear();
    // An organization that was alone owes no time.
    const least = this.#isAlone(org_id, now) ? 0 : -Infinity;
    time.left = Math.max(least, Math.min(BURST_MS, time.left + (now - time.at) * TIME_SHARE) - (now - began) * weight);
    time.at = now;
    this.#times.set(org_id, time);
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#used.clear();
      const restMs = this.#serve(this.#now());
      if (this.#used.size > 0) this.#schedule();
      else if (this.#queues.size > 0) this.#wakeIn(restMs);
    });
  }

  /** Serves the queues again when the first organization has time, or after WAKE_MS_MAX. */
  #wakeIn(ms: number): void {
    this.#wake ??= setTimeout(
      () => {
        this.#wake = null;
        this.#schedule();
      },
      Math.min(Math.max(1, Math.ceil(ms)), WAKE_MS_MAX),
    );
  }

  /**
   * Admits one quantum of the next queue, and rejects bodies that have waited too long.
   * @returns milliseconds until a queue may be served, where every organization has to wait;
   * Infinity without queues; 0 when one was served
   */
  #serve(now: number): number {
    let soonest = Infinity;
    for (const [org_id, queue] of this.#queues) {
      for (let next = queue[0]; next !== undefined && now - next.since > TURN_WAIT_MS_MAX; next = queue[0]) {
        queue.shift();
        next.resolve(TOO_LATE);
      }
      const restMs = queue.length === 0 ? 0 : this.#restMs(org_id, now);
      if (restMs > 0) {
        soonest = Math.min(soonest, restMs);
        continue;
      }
      let served = 0;
      for (
        let next = queue[0];
        next !== undefined && (served === 0 || served + next.bytes <= QUANTUM_BYTES);
        next = queue[0]
      ) {
        queue.shift();
        served += next.bytes;
        next.resolve(ADMIT);
      }
      this.#queues.delete(org_id);
      if (queue.length > 0) this.#queues.set(org_id, queue);
      if (served === 0) continue;
      this.#used.set(org_id, served);
      return 0;
    }
    return soonest;
  }
}
