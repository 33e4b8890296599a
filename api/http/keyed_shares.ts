// How much of the store of idempotency answers each tenant may fill, so that one tenant cannot take it from the others.
// In: how much of a tenant the store holds now, counted by the store itself, and what this process adds. Out: whether the
// tenant may add a record. Nothing is kept of it, so a process that dies loses no count. A tenant can exceed its share by what
// other processes add between two measurements: some MiB.

/** What one tenant's records hold. */
export interface TenantUse {
  bytes: number;
  records: number;
  /** When the oldest of them was written, milliseconds since the epoch; null without any. */
  oldest_ms: number | null;
}

export interface ShareDeps {
  bytesMax: number;
  recordsMax: number;
  /** How long a record is kept. */
  ttlMs: number;
  /** Counts a tenant's records in the store. */
  measure: (tenant: string) => Promise<TenantUse>;
  /** Milliseconds since the epoch. */
  now: () => number;
  onProblem: (problem: string, cause: unknown) => void;
}

/** Bytes that the store needs for a record beside its text: subject, headers, bookkeeping. */
const RECORD_OVERHEAD_BYTES = 200;
/** A tenant past this part of its share is measured again after FRESH_MS, as other processes may have added; others seldom. */
const WATCHED_PART = 0.25;
const FRESH_MS = 5_000;
const STALE_MS = 300_000;
/** Tenants whose use is remembered; the one measured longest ago makes room. */
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
   * Returns when the tenant's oldest record expires, milliseconds since the epoch, where the tenant has filled its share; null while
   * there is room. A store that cannot be measured counts as having room.
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
      // Only a refusal waits for the newest count: records may have expired since the last one.
      if (this.#isFull(known)) await measuring;
    }
    return this.#isFull(known) ? (known.oldest_ms ?? now()) + ttlMs : null;
  }

  /** Counts what this process has written, until the next measurement does. */
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
          onProblem('the idempotency answers of a tenant could not be counted; the next count will', cause);
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
