// Fair shares of the pipeline. Workers land the log in its order, so what one org has in it is in front of everybody who comes
// after. This keeps count of what each org has in the log and not in the store, as far as this process put it there, and refuses
// an org that has more than its share of a bounded backlog while there is another org to protect.
// Nobody is refused where one org is alone, where all are beyond their share alike, or while the store stands still: then the log
// takes everything, as it is there for. An estimate, not an account: it decides who waits, never what is stored.
import type { OutgoingEvent } from '../intake/ingest/publisher.ts';
import type { RequestFacts } from './check.ts';
import { ADMIT, reject, type Settled } from './decision.ts';

/** How far behind the backlog of one process may be before the largest are refused, seconds of landing. */
export const BACKLOG_S = 1;
/** A backlog that is never too much: about what one landing takes. */
export const BACKLOG_MIN = 8 * 1024 * 1024;
/** What an event costs beside its bytes. */
export const EVENT_COST = 512;
/** An org that sent within this time is there to be protected. */
export const ACTIVE_MS = 10_000;
/** Nothing has landed for this long: the store is away, and not an org too large. */
export const STALL_MS = 10_000;
/** What was in the log this long ago has landed: the worker has caught up. */
export const CAUGHT_UP_MS = 2000;
/** The rate of landing is that of about the last so many milliseconds. */
const RATE_MS = 2000;
/** The limit is worked out again this often at most. */
const LEVEL_MS = 50;
const RETRY_AFTER_SECONDS = 1;

const ABOVE_SHARE = reject(
  'rate_limited',
  'The pipeline is behind, and this org sends more than its share. Send it again shortly.',
  RETRY_AFTER_SECONDS,
);
/** What an org stores in a partition up to this cost is one entry. */
const ENTRY_COST = 64 * 1024;
/** Entries that are counted; with more of them the count begins anew, as after a standstill. */
export const ENTRIES_MAX = 200_000;

/** What is in the log and has not landed. Cost: bytes, and EVENT_COST an event. */
interface Entry {
  seq: number;
  org: Org;
  cost: number;
}

interface Org {
  backlog: number;
  stored_at: number;
}

/** A queue that is read from its front without moving the rest each time. */
interface PartitionBacklog {
  entries: Entry[];
  from: number;
  /** The newest sequence that was stored, and up to which all has landed. */
  stored: number;
  landed: number;
}

const COMPACT_FROM = 1024;

export class BacklogShares {
  readonly #now: () => number;
  readonly #partitions: PartitionBacklog[];
  readonly #orgs = new Map<string, Org>();
  #backlog = 0;
  #entries = 0;
  #prunedAt: number;
  /** Cost a millisecond. */
  #rate = 0;
  #ratedAt: number;
  #landedAt: number;
  /** While the store stands still, and until the worker has caught up: what was stored by then, by partition. */
  #standstill: { through: number[]; at: number; until: number } | null = null;
  #level = Infinity;
  #levelAt = -Infinity;

  /** @param now milliseconds, monotonic */
  constructor(partitions: number, now: () => number = () => performance.now()) {
    this.#now = now;
    this.#partitions = Array.from({ length: partitions }, () => ({ entries: [], from: 0, stored: 0, landed: 0 }));
    this.#ratedAt = now();
    this.#landedAt = now();
    this.#prunedAt = now();
  }

  /** Rejects an organization that is above its share of a backlog that is too large. */
  decide({ org_id }: Pick<RequestFacts, 'org_id'>): Settled {
    const org = this.#orgs.get(org_id);
    if (org === undefined || org.backlog === 0 || org.backlog <= this.#levelNow()) return ADMIT;
    return ABOVE_SHARE;
  }

  /** Events are in the log. @param positions by partition, the JetStream sequence of the last message that holds some */
  stored(events: readonly OutgoingEvent[], positions: ReadonlyMap<number, number>): void {
    const now = this.#now();
    if (this.#backlog === 0) this.#landedAt = now;
    for (const [org_id, costs] of costsOf(events)) {
      const org = this.#orgs.get(org_id) ?? { backlog: 0, stored_at: now };
      this.#orgs.set(org_id, org);
      org.stored_at = now;
      for (const [partition, cost] of costs) this.#add(org, partition, positions.get(partition) ?? 0, cost);
    }
    this.#watchStall(now);
    if (now - this.#prunedAt > ACTIVE_MS) this.#prune(now);
  }

  /** Forgets who has nothing waiting and has not sent for a while. */
  #prune(now: number): void {
    this.#prunedAt = now;
    for (const [org_id, { backlog, stored_at }] of this.#orgs)
      if (backlog === 0 && now - stored_at > ACTIVE_MS) this.#orgs.delete(org_id);
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

  /** A worker says up to where partitions have landed. */
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

  /** Standing still is nobody's flood: the count begins anew once the worker has caught up. */
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
    // It lands again: catching up may take as long as it stood still, and again; then whoever still floods is no victim of it.
    if (standstill.until === Infinity) standstill.until = now + 2 * (now - standstill.at) + STALL_MS;
    const reached = this.#partitions.every(({ landed }, partition) => landed >= (standstill.through[partition] ?? 0));
    if (now < standstill.until && !(reached && now - standstill.at <= CAUGHT_UP_MS)) {
      if (reached) [standstill.through, standstill.at] = [this.#partitions.map(({ stored }) => stored), now];
      return;
    }
    this.#standstill = null;
    this.#landedAt = now;
  }

  /** What an org may have in the backlog now; Infinity while nobody has to be refused. */
  #levelNow(): number {
    const now = this.#now();
    if (now - this.#levelAt < LEVEL_MS) return this.#level;
    this.#levelAt = now;
    this.#watchStall(now);
    const most = Math.max(BACKLOG_MIN, this.#rate * BACKLOG_S * 1000);
    this.#level = Infinity;
    if (this.#backlog <= most) return this.#level;
    this.#prune(now);
    const level = fairLevel(
      [...this.#orgs.values()].map(({ backlog }) => backlog),
      most,
    );
    if ([...this.#orgs.values()].some(({ backlog }) => backlog <= level)) this.#level = level;
    return this.#level;
  }
}

/** What events cost, by org and partition. */
function costsOf(events: readonly OutgoingEvent[]): Map<string, Map<number, number>> {
  const byOrg = new Map<string, Map<number, number>>();
  for (const { event, partition, bytes } of events) {
    let costs = byOrg.get(event.org_id);
    if (costs === undefined) byOrg.set(event.org_id, (costs = new Map<number, number>()));
    costs.set(partition, (costs.get(partition) ?? 0) + bytes + EVENT_COST);
  }
  return byOrg;
}

/** The largest amount such that all amounts, each cut to it, are at most `most` together (max-min fairness). */
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
