// Decides which organizations land in the bulk lane. The express lane lands every batch at once; the
// bulk lane lands beside it what would hold the express lane up: many rows, large texts, events of many
// months (a part for each). Takes the events of a batch; answers by organization.
//
// The rows of one organization land in the order of the log: while rows of it wait in the bulk lane, its
// further rows go there too. Nobody lands in the bulk lane unless another organization sends little, so
// an organization that is alone, and many that send alike, land as one.
import { LIMITS } from '../limits.ts';

/** Cost of an organization's events in one batch from which on they land in the bulk lane. */
export const BULK_COST = 64 * 1024;
/** Cost of an event beside its bytes. */
const EVENT_COST = 512;
/** Cost of a month: a landing writes parts of its own for each. */
const MONTH_COST = 8 * 1024;
/** An organization that has sent within this time, and little of it, is protected from the others. */
export const ACTIVE_MS = 10_000;
const MONTH_MS = (365.25 * 86_400_000) / 12;

interface Org {
  seen_at: number;
  /** When a batch had more than BULK_COST of it. */
  heavy_at: number;
  /** True if it sent little in the time before this batch, or nothing. */
  isLight: boolean;
  /** Cost of its events in this batch. */
  cost: number;
  /** Months in which its spans of this batch began. */
  months: Set<number>;
  isBulk: boolean;
  /** Batches whose rows of it wait in the bulk lane. */
  waiting: number;
}

export class LandingLanes {
  readonly #now: () => number;
  readonly #bulkCost: number;
  readonly #orgs = new Map<string, Org>();
  /** Organizations of which isLight is true. */
  #light = 0;
  /** Organizations that were heavy within ACTIVE_MS. */
  #heavy = 0;
  /** Organizations of this batch in the bulk lane. */
  #bulk = new Set<string>();
  #waiting = 0;
  #batchAt = 0;

  /**
   * @param now milliseconds of a monotonic clock
   * @param bulkCost in place of BULK_COST
   */
  constructor(now: () => number = () => performance.now(), bulkCost = BULK_COST) {
    this.#now = now;
    this.#bulkCost = bulkCost;
  }

  /**
   * Returns the maximum bytes of messages of the next batch, which is small beside a flood, because the
   * events of others are prepared with it. The first batch of a flood cannot be told from others, so while
   * some organizations send little, batches grow by a factor of two at most.
   * @param lastBytes bytes of the batch before
   */
  batchBytesMax(lastBytes: number): number {
    const { batch_bytes_max, lane_batch_bytes_max } = LIMITS;
    if (this.#waiting > 0 || (this.#light > 0 && this.#heavy > 0)) return lane_batch_bytes_max;
    return this.#light === 0
      ? batch_bytes_max
      : Math.min(batch_bytes_max, Math.max(lane_batch_bytes_max, 2 * lastBytes));
  }

  /** Begins a batch. Forgets organizations that have not sent for ACTIVE_MS. */
  begin(): void {
    const since = this.#now() - ACTIVE_MS;
    this.#batchAt = this.#now();
    this.#bulk = new Set();
    this.#light = 0;
    this.#heavy = 0;
    for (const [org_id, org] of this.#orgs) {
      if (org.seen_at <= since && org.waiting === 0) {
        this.#orgs.delete(org_id);
        continue;
      }
      org.isLight = org.seen_at > since && org.heavy_at <= since;
      if (org.isLight) this.#light += 1;
      if (org.heavy_at > since) this.#heavy += 1;
      org.cost = 0;
      org.months.clear();
      org.isBulk = false;
    }
  }

  /** Counts an event of the batch. @param bytes size of its body */
  addEvent(org_id: string, bytes: number): void {
    const org = this.#org(org_id);
    // An organization that was silent counts from its first event on.
    if (!org.isLight && Math.max(org.seen_at, org.heavy_at) <= this.#batchAt - ACTIVE_MS) {
      org.isLight = true;
      this.#light += 1;
    }
    org.seen_at = this.#batchAt;
    org.cost += bytes + EVENT_COST;
  }

  /** Counts a span of the batch. @param startedAt milliseconds since the epoch */
  addSpan(org_id: string, startedAt: number): void {
    this.#org(org_id).months.add(Math.floor(startedAt / MONTH_MS));
  }

  /** Returns whether rows of an organization go into the bulk lane. */
  isBulk(org_id: string): boolean {
    const org = this.#org(org_id);
    if (org.isBulk) return true;
    const isHeavy = org.cost + MONTH_COST * Math.max(0, org.months.size - 1) > this.#bulkCost;
    if (isHeavy) org.heavy_at = this.#batchAt;
    const protects = this.#light > (org.isLight ? 1 : 0);
    if (org.waiting === 0 && !(isHeavy && protects)) return false;
    org.isBulk = true;
    this.#bulk.add(org_id);
    return true;
  }

  /** Returns the organizations of the batch that are in the bulk lane; their rows wait from now on. */
  takeBulk(): ReadonlySet<string> {
    const orgs = this.#bulk;
    this.#bulk = new Set();
    for (const org_id of orgs) this.#org(org_id).waiting += 1;
    this.#waiting += orgs.size;
    return orgs;
  }

  /** The rows of a batch's organizations have left the bulk lane. */
  landed(orgs: ReadonlySet<string>): void {
    for (const org_id of orgs) this.#org(org_id).waiting -= 1;
    this.#waiting -= orgs.size;
  }

  #org(org_id: string): Org {
    const known = this.#orgs.get(org_id);
    if (known !== undefined) return known;
    const org: Org = {
      seen_at: -Infinity,
      heavy_at: -Infinity,
      isLight: false,
      cost: 0,
      months: new Set(),
      isBulk: false,
      waiting: 0,
    };
    this.#orgs.set(org_id, org);
    return org;
  }
}
