// Lets requests of organizations above their share of the backlog wait for a landing, so that such an
// organization is slowed to the pace at which its events land, and only what cannot be admitted soon is
// rejected. Takes requests whose bodies were not read; decides when each is admitted or rejected.
//
// Requests of an organization are admitted in their order, organizations in turns. A request waits for
// WAIT_MS_MAX at most, and ORG_WAITING_MAX and WAITING_MAX bound how many wait.
import { ABOVE_SHARE, type BacklogShares } from './backlog_shares.ts';
import type { RequestFacts } from './check.ts';
import type { Decision, Settled } from './decision.ts';

/**
 * Maximum milliseconds for which a request waits. They count toward the time within which the log has
 * to confirm its events.
 */
export const WAIT_MS_MAX = 400;
/** Maximum number of requests of one organization that wait. */
export const ORG_WAITING_MAX = 256;
/** Maximum number of requests that wait in one process. */
export const WAITING_MAX = 2048;
/** Interval at which waiting requests are looked at beside the reports of landings. */
const LOOK_MS = 25;

interface Waiting {
  since: number;
  resolve: (decision: Settled) => void;
}

type Facts = Pick<RequestFacts, 'org_id'>;

export class BacklogQueue {
  readonly #shares: Pick<BacklogShares, 'decide'>;
  readonly #now: () => number;
  /** Waiting requests by organization, oldest first. The order of the map is that of the turns. */
  readonly #queues = new Map<string, Waiting[]>();
  #waiting = 0;
  #timer: NodeJS.Timeout | null = null;

  /** @param now milliseconds of a monotonic clock */
  constructor(shares: Pick<BacklogShares, 'decide'>, now: () => number = () => performance.now()) {
    this.#shares = shares;
    this.#now = now;
  }

  /**
   * Admits a request of an organization within its share at once. Any other waits, and is rejected
   * after WAIT_MS_MAX or where too many wait.
   */
  decide({ org_id }: Facts): Decision {
    const queue = this.#queues.get(org_id);
    const isFull = this.#waiting >= WAITING_MAX || (queue?.length ?? 0) >= ORG_WAITING_MAX;
    if (queue === undefined) {
      const decision = this.#shares.decide({ org_id });
      if (decision.kind === 'admit' || isFull) return decision;
    } else if (isFull) return ABOVE_SHARE;
    const { promise, resolve } = Promise.withResolvers<Settled>();
    const waiting = { since: this.#now(), resolve };
    if (queue === undefined) this.#queues.set(org_id, [waiting]);
    else queue.push(waiting);
    this.#waiting += 1;
    this.#look();
    return { kind: 'wait', decided: promise };
  }

  /** Admits waiting requests for which there is room, and rejects those that have waited too long. */
  serve(): void {
    const now = this.#now();
    for (let isServed = true; isServed;) {
      isServed = false;
      for (const [org_id, queue] of this.#queues) {
        const [first] = queue;
        if (first === undefined) continue;
        const decision = this.#shares.decide({ org_id });
        if (decision.kind === 'reject' && now - first.since < WAIT_MS_MAX) continue;
        queue.shift();
        this.#waiting -= 1;
        if (queue.length === 0) this.#queues.delete(org_id);
        first.resolve(decision);
        isServed = true;
      }
    }
    this.#look();
  }

  #look(): void {
    if (this.#waiting === 0 || this.#timer !== null) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.serve();
    }, LOOK_MS);
    this.#timer.unref();
  }
}
