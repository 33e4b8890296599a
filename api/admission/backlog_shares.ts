// Fair shares of the backlog. Workers read the ingest log in its order, so the backlog of one
// organization delays every organization behind it. Takes what this process has stored in the log,
// the requests that are about to be stored, and the reports of landings; rejects an organization above
// its fair share of a bounded backlog while another organization needs protection. backlog_queue.ts
// lets its requests wait before they are rejected.
//
// It rejects nobody while one organization is alone, while all of them are above their share alike,
// or while the store is away: then the log takes everything, which is its purpose. The count is an
// estimate: it decides who waits, never what is stored.
import type { OutgoingEvent } from '../intake/ingest/publisher.ts';
import type { RequestFacts } from './check.ts';
import { admitWith, reject, type Reservation, type Settled } from './decision.ts';

/**
 * Seconds of landing that the backlog of one process may hold before the largest organizations are
 * rejected.
 */
export const BACKLOG_S = 0.7;
/** Cost of a backlog that is always accepted: enough for a landing while the next one is prepared. */
export const BACKLOG_MIN = 3 * 1024 * 1024;
/** Cost of an event beside its bytes. */
export const EVENT_COST = 512;
/** An organization that has sent within this time is protected from the others. */
export const ACTIVE_MS = 10_000;
/**
 * After this long without a landing the store is considered away: no organization is to blame for
 * the backlog.
 */
export const STALL_MS = 10_000;
/** The worker has caught up once it lands what was stored this long ago. */
export const CAUGHT_UP_MS = 2000;
/** Time constant of the average landing rate, milliseconds. */
const RATE_MS = 2000;
/** The fair share is computed at most this often. */
const LEVEL_MS = 20;
/** Share of the newest request in the mean cost of an organization's requests. */
const MEAN_SHARE = 1 / 8;
/** Cost that is reserved for a request of an organization of which nothing is known. */
const FIRST_COST = 4096;
const RETRY_AFTER_SECONDS = 1;

export const ABOVE_SHARE = reject(
  'rate_limited',
  'The pipeline is behind, and this organization sends more than its share. Retry after the number of seconds in Retry-After.',
  RETRY_AFTER_SECONDS,
);
/** Events of one organization in one partition share an entry up to this cost. */
const ENTRY_COST = 64 * 1024;
/**
 * Maximum number of entries. Beyond it counting starts over, as after a standstill of the store.
 */
export const ENTRIES_MAX = 200_000;

/**
 * Events of one organization that are in the log and have not landed. Cost: their bytes, and
 * EVENT_COST for each.
 */
interface Entry {
  seq: number;
  org: Org;
  cost: number;
}

interface Org {
  backlog: number;
  /** Estimated cost of its requests that were admitted and have not ended. */
  reserved: number;
  /** Mean cost of its requests. */
  mean: number;
  /** When the log last stored events of it; -Infinity before. */
  stored_at: number;
}

const newOrg = (): Org => ({ backlog: 0, reserved: 0, mean: FIRST_COST, stored_at: -Infinity });
const costOf = ({ backlog, reserved }: Org): number => backlog + reserved;

/**
 * The backlog of one partition: a queue whose front is an index, so that taking from it moves
 * nothing.
 */
interface PartitionBacklog {
  entries: Entry[];
  from: number;
  /** The newest position that was stored, and the position up to which everything has landed. */
  stored: number;
  landed: number;
}

const COMPACT_FROM = 1024;

export class BacklogShares {
  readonly #now: () => number;
  readonly #partitions: PartitionBacklog[];
  readonly #orgs = new Map<string, Org>();
  #backlog = 0;
  #reserved = 0;
  #entries = 0;
  #prunedAt: number;
  /** Landing rate, cost per millisecond. */
  #rate = 0;
  #ratedAt: number;
  #landedAt: number;
  /**
   * Set from a standstill of the store until the worker has caught up; nothing is counted
   * meanwhile. `through` holds the newest position of each partition when the standstill began or
   * was last reached.
   */
  #standstill: { through: number[]; at: number; until: number } | null = null;
  #level = Infinity;
  #levelAt = -Infinity;

  /** @param now milliseconds of a monotonic clock */
  constructor(partitions: number, now: () => number = () => performance.now()) {
    this.#now = now;
    this.#partitions = Array.from({ length: partitions }, () => ({ entries: [], from: 0, stored: 0, landed: 0 }));
    this.#ratedAt = now();
    this.#landedAt = now();
    this.#prunedAt = now();
  }

  /**
   * Rejects an organization that is above its share of a backlog that is too large. Reserves the mean
   * cost of its requests for a request that it admits, because all connections of an organization may
   * send at the same moment.
   */
  decide({ org_id }: Pick<RequestFacts, 'org_id'>): Settled {
    const org = this.#orgs.get(org_id) ?? newOrg();
    const cost = costOf(org);
    if (cost > 0 && cost > this.#levelNow()) return ABOVE_SHARE;
    this.#orgs.set(org_id, org);
    return admitWith(this.#reserve(org));
  }

  #reserve(org: Org): Reservation {
    let held = org.mean;
    org.reserved += held;
    this.#reserved += held;
    return {
      release: () => {
        org.reserved -= held;
        this.#reserved -= held;
        held = 0;
      },
    };
  }

  /**
   * Counts events that the log has stored.
   * @param positions position of the last message with these events, by partition
   */
  stored(events: readonly OutgoingEvent[], positions: ReadonlyMap<number, number>): void {
    const now = this.#now();
    if (this.#backlog === 0) this.#landedAt = now;
    for (const [org_id, costs] of costsOf(events)) {
      const org = this.#orgs.get(org_id) ?? newOrg();
      this.#orgs.set(org_id, org);
      org.stored_at = now;
      let sum = 0;
      for (const [partition, cost] of costs) {
        sum += cost;
        this.#add(org, partition, positions.get(partition) ?? 0, cost);
      }
      org.mean += (sum - org.mean) * MEAN_SHARE;
    }
    this.#watchStall(now);
    if (now - this.#prunedAt > ACTIVE_MS) this.#prune(now);
  }

  /** Forgets organizations that have no backlog, no request and have not sent for ACTIVE_MS. */
  #prune(now: number): void {
    this.#prunedAt = now;
    for (const [org_id, org] of this.#orgs)
      if (costOf(org) === 0 && now - org.stored_at > ACTIVE_MS) this.#orgs.delete(org_id);
  }

  #add(org: Org, partition: number, seq: number, cost: number): void {
    const waiting = this.#partitions[partition];
    if (waiting === undefined) return;
    waiting.stored = Math.max(waiting.stored, seq);
    if (this.#standstill !== null || seq <= waiting.landed) return;
    org.backlog += cost;
    this.#backlog += cost;
    const last = waiting.entries.at(-1);
    if (last?.org === org && last.cost + cost <= ENTRY_COST) {
      last.seq = Math.max(last.seq, seq);
      last.cost += cost;
      return;
    }
    waiting.entries.push({ seq, org, cost });
    this.#entries += 1;
  }

  /** Takes a worker's report of the positions up to which partitions have landed. */
  landed(through: readonly (readonly [partition: number, seq: number])[]): void {
    const now = this.#now();
    let cost = 0;
    for (const [partition, seq] of through) {
      const waiting = this.#partitions[partition];
      if (waiting === undefined || seq <= waiting.landed) continue;
      waiting.landed = seq;
      for (
        let entry = waiting.entries[waiting.from];
        entry !== undefined && entry.seq <= seq;
        entry = waiting.entries[waiting.from]
      ) {
        entry.org.backlog -= entry.cost;
        cost += entry.cost;
        waiting.from += 1;
        this.#entries -= 1;
      }
      if (waiting.from < COMPACT_FROM && waiting.from < waiting.entries.length) continue;
      waiting.entries.splice(0, waiting.from);
      waiting.from = 0;
    }
    this.#backlog -= cost;
    const kept = Math.exp(-(now - this.#ratedAt) / RATE_MS);
    if (now > this.#ratedAt) this.#rate = this.#rate * kept + (cost / (now - this.#ratedAt)) * (1 - kept);
    this.#ratedAt = now;
    if (cost > 0) this.#landedAt = now;
    this.#watchCatchUp(now);
  }

  /** Stops counting while the store is away. Counting starts over once the worker has caught up. */
  #watchStall(now: number): void {
    const stalled = this.#backlog > 0 && now - this.#landedAt >= STALL_MS;
    if (this.#standstill !== null || (!stalled && this.#entries <= ENTRIES_MAX)) return;
    for (const waiting of this.#partitions) [waiting.entries, waiting.from] = [[], 0];
    for (const org of this.#orgs.values()) org.backlog = 0;
    [this.#backlog, this.#entries] = [0, 0];
    this.#standstill = { through: this.#partitions.map(({ stored }) => stored), at: now, until: Infinity };
  }

  #watchCatchUp(now: number): void {
    const standstill = this.#standstill;
    if (standstill === null) return;
    // Landing has resumed. Catching up may take twice as long as the standstill did; an
    // organization that still floods after that is counted again.
    if (standstill.until === Infinity) standstill.until = now + 2 * (now - standstill.at) + STALL_MS;
    const reached = this.#partitions.every(({ landed }, partition) => landed >= (standstill.through[partition] ?? 0));
    if (now < standstill.until && !(reached && now - standstill.at <= CAUGHT_UP_MS)) {
      if (reached) [standstill.through, standstill.at] = [this.#partitions.map(({ stored }) => stored), now];
      return;
    }
    this.#standstill = null;
    this.#landedAt = now;
  }

  /**
   * Returns the cost that an organization may have in the backlog; Infinity while nobody has to be
   * rejected.
   */
  #levelNow(): number {
    const now = this.#now();
    const most = Math.max(BACKLOG_MIN, this.#rate * BACKLOG_S * 1000);
    if (this.#backlog + this.#reserved <= most) {
      this.#levelAt = -Infinity;
      return Infinity;
    }
    if (now - this.#levelAt < LEVEL_MS) return this.#level;
    this.#levelAt = now;
    this.#watchStall(now);
    this.#prune(now);
    this.#level = Infinity;
    const level = fairLevel([...this.#orgs.values()].map(costOf), most);
    const isBelow = (org: Org): boolean => org.stored_at > -Infinity && costOf(org) <= level;
    if (this.#orgs.values().some(isBelow)) this.#level = level;
    return this.#level;
  }
}

/** Returns the cost of events by organization and partition. */
function costsOf(events: readonly OutgoingEvent[]): Map<string, Map<number, number>> {
  const byOrg = new Map<string, Map<number, number>>();
  for (const { event, partition, bytes } of events) {
    let costs = byOrg.get(event.org_id);
    if (costs === undefined) byOrg.set(event.org_id, (costs = new Map<number, number>()));
    costs.set(partition, (costs.get(partition) ?? 0) + bytes + EVENT_COST);
  }
  return byOrg;
}

/**
 * Returns the largest level such that the amounts, each cut to it, add up to `most` at the most
 * (max-min fairness).
 */
export function fairLevel(amounts: readonly number[], most: number): number {
  const sorted = [...amounts].sort((a, b) => a - b);
  let left = most;
  for (const [index, amount] of sorted.entries()) {
    const level = left / (sorted.length - index);
    if (amount > level) return level;
    left -= amount;
  }
  return Infinity;
}
