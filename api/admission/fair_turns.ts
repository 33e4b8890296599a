// Turns on the event loop for bodies that are parsed and checked. One process has one loop: sixty large bodies that are
// complete at the same time would hold up everybody's requests until the last of them is checked. Here an org gets a quantum of
// bytes in each turn of the loop, and while others send too a part of the loop's time; what is beyond waits in the org's queue, and
// lines are served in rotation, one quantum a turn.
import type { RequestFacts } from './check.ts';
import { ADMIT, type Decision, reject, type Settled } from './decision.ts';

/** What an org may have checked in one turn of the loop: a few milliseconds of work. A larger body has a turn to itself. */
export const QUANTUM_BYTES = 256 * 1024;
/** Who has waited for this long is refused: the answer is due within a second of the body. */
export const TURN_WAIT_MS_MAX = 600;
/**
 * The part of the loop's time that an org has for its checks while others send too. A good body costs the log and the store many times
 * what its check costs, so whoever needs more than this sends what is dear to check and comes to nothing.
 */
export const TIME_SHARE = 1 / 4;
/**
 * A check that ends in a refusal counts this many times: nothing comes of it, and what it leaves to the garbage collector takes the loop's
 * time again. Who sends only what is refused has a sixteenth of the loop; one bad body in ten costs an org a quarter of its time.
 */
export const REJECTED_WEIGHT = 4;
/** Time that an org may use at once. */
export const BURST_MS = 20;
/** An org that sent within this time is there to be protected. */
export const ACTIVE_MS = 1000;
/** While orgs wait for their time, they are looked at this often at least: none is to be refused later than it has to, or to rest for another. */
const WAKE_MS_MAX = 50;
/** Orgs whose time is counted; with more of them the count begins anew. */
const TIMED_ORGS_MAX = 10_000;
const RETRY_AFTER_SECONDS = 1;

const TOO_LATE = reject(
  'rate_limited',
  'Too many bytes of this org wait to be checked. Send them again shortly.',
  RETRY_AFTER_SECONDS,
);

interface Waiting {
  bytes: number;
  since: number;
  resolve: (decision: Settled) => void;
}

/** Milliseconds that an org has left, as of a time. Below 0 it rests. */
interface Time {
  left: number;
  at: number;
}

export class FairTurns {
  readonly #now: () => number;
  /** By org, the longest waiting first; the order of the map is that of the rotation. What waits is bounded by the bytes in flight. */
  readonly #queues = new Map<string, Waiting[]>();
  /** Bytes that an org has had checked in this turn. */
  readonly #used = new Map<string, number>();
  readonly #times = new Map<string, Time>();
  /** The org that sent last, and the last one before it that is another. */
  #newest = { org_id: '', at: -Infinity };
  #other = { org_id: '', at: -Infinity };
  #scheduled = false;
  #wake: NodeJS.Timeout | null = null;

  /** @param now milliseconds, monotonic */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Decides whether a body may be parsed now. Where it may not, it waits for its turn, or is rejected after TURN_WAIT_MS_MAX. */
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

  /** How long an org has to wait before it may have anything checked; 0: not at all. */
  #restMs(org_id: string, now: number): number {
    const time = this.#times.get(org_id);
    if (time === undefined) return 0;
    const left = time.left + (now - time.at) * TIME_SHARE;
    if (left >= BURST_MS) this.#times.delete(org_id);
    return left >= 0 || this.#isAlone(org_id, now) ? 0 : -left / TIME_SHARE;
  }

  /** Parses a body whose turn it is, and charges the time that it takes to the organization. @throws what `work` throws */
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
    // An org that was alone owes nothing for it.
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

  /** Everybody who waits has to rest: looks again when the first of them may go on. */
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
   * One quantum of the queue whose turn it is; those who have waited too long cost nothing.
   * @returns how long to wait until a queue may be served, where none was for its rest
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
