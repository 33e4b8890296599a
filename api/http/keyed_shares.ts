// Bounds the part of the idempotency store that each tenant may fill, so that one tenant cannot
// take it from the others. Takes the use of a tenant as the store counts it, and what this process
// adds; returns whether the tenant may add a record. The store is the only count, so a process that
// dies loses none. A tenant can exceed its share by what other processes add between two
// measurements: a few MiB.
import type { ReportProblem } from '../../ops/platform/report_problem.ts';

/** Size of one tenant's records. */
export interface TenantUse {
  bytes: number;
  records: number;
  /** Write time of the oldest record, milliseconds since the epoch; null without any. */
  oldest_ms: number | null;
}

export interface ShareDeps {
  bytesMax: number;
  recordsMax: number;
  /** Lifetime of a record, milliseconds. */
  ttlMs: number;
  /** Counts a tenant's records in the store. */
  measure: (tenant: string) => Promise<TenantUse>;
  /** Milliseconds since the epoch. */
  now: () => number;
  onProblem: ReportProblem;
}

/** Bytes that the store needs for a record besides its text: subject, headers, bookkeeping. */
const RECORD_OVERHEAD_BYTES = 200;
/**
 * A tenant above this part of its share is measured again after FRESH_MS, because other processes
 * may have added records; others after STALE_MS.
 */
const WATCHED_PART = 0.25;
const FRESH_MS = 5_000;
const STALE_MS = 300_000;
/** Maximum number of tenants whose use is remembered; the one measured longest ago is evicted. */
const TENANTS_MAX = 10_000;

interface Known extends TenantUse {
  measured_at: number;
  measuring: Promise<void> | null;
}

export class TenantShares {
  readonly #deps: ShareDeps;
  readonly #known = new Map<string, Known>();

  constructor(deps: ShareDeps) {
    this.#deps = deps;
  }

  /**
   * Returns when the tenant's oldest record expires, milliseconds since the epoch, where the tenant
   * has filled its share; null while there is room. A store that cannot be measured counts as
   * having room.
   */
  async fullUntil(tenant: string): Promise<number | null> {
    const { now, ttlMs } = this.#deps;
    let known = this.#known.get(tenant);
    if (known === undefined) {
      known = { bytes: 0, records: 0, oldest_ms: null, measured_at: -Infinity, measuring: null };
      this.#remember(tenant, known);
      await this.#measure(tenant, known);
    } else if (this.#isDue(known)) {
      const measuring = this.#measure(tenant, known);
      // Only a rejection waits for the newest count: records may have expired since the last one.
      if (this.#isFull(known)) await measuring;
    }
    return this.#isFull(known) ? (known.oldest_ms ?? now()) + ttlMs : null;
  }

  /** Counts what this process has written, until the next measurement includes it. */
  added(tenant: string, { bytes, records }: Pick<TenantUse, 'bytes' | 'records'>): void {
    const known = this.#known.get(tenant);
    if (known === undefined) return;
    known.bytes += bytes + records * RECORD_OVERHEAD_BYTES;
    known.records += records;
  }

  #isFull({ bytes, records }: TenantUse): boolean {
    return bytes >= this.#deps.bytesMax || records >= this.#deps.recordsMax;
  }

  #isDue({ bytes, records, measured_at }: Known): boolean {
    const { bytesMax, recordsMax, now } = this.#deps;
    const watched = bytes >= bytesMax * WATCHED_PART || records >= recordsMax * WATCHED_PART;
    return now() - measured_at >= (watched ? FRESH_MS : STALE_MS);
  }

  #measure(tenant: string, known: Known): Promise<void> {
    const { measure, now, onProblem } = this.#deps;
    known.measuring ??= measure(tenant)
      .then(
        ({ bytes, records, oldest_ms }) => {
          Object.assign(known, { bytes: bytes + records * RECORD_OVERHEAD_BYTES, records, oldest_ms });
        },
        (cause: unknown) => {
          onProblem('the idempotency records of a tenant could not be counted; the next measurement retries', cause);
        },
      )
      .then(() => {
        known.measured_at = now();
        known.measuring = null;
        this.#remember(tenant, known);
      });
    return known.measuring;
  }

  #remember(tenant: string, known: Known): void {
    this.#known.delete(tenant);
    this.#known.set(tenant, known);
    const [oldest] = this.#known.keys();
    if (this.#known.size > TENANTS_MAX && oldest !== undefined) this.#known.delete(oldest);
  }
}
