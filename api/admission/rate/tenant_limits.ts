// The rate limits of all tenants, in memory: one token bucket for each tenant and kind. Taking a
// token waits for nothing and takes well under a microsecond. Limits follow the organization's
// record at every take. Grants are noted for the other processes and theirs are debited here
// (sharing.ts carries both), so that a tenant's rate applies across all processes.
import type { RateKind, RateLimits, RateVerdict } from '../../http/rate_limit.ts';
import {
  type Bucket,
  debit,
  fullBucket,
  leaveMissing,
  missing,
  refill,
  remaining,
  rescale,
  secondsUntilFull,
  secondsUntilGranted,
  take,
} from './bucket.ts';
import type { PlanLimits } from './plans.ts';

/**
 * Maximum number of buckets of one kind. Beyond it the oldest is evicted, which is as if it were
 * full.
 */
export const BUCKETS_MAX = 100_000;

const UNLIMITED: RateVerdict = Object.freeze({ allowed: true, headers: Object.freeze({}) });
const KINDS = ['ingest', 'api', 'app', 'backfill'] as const satisfies readonly RateKind[];

/** Tokens that a process has granted. */
export interface Spent {
  kind: RateKind;
  tenant: string;
  tokens: number;
}

/** Units that a bucket lacks until it is full, as in bucket.ts. */
export interface Missing {
  kind: RateKind;
  tenant: string;
  units: number;
}

export interface TenantLimitsDeps {
  /** Called at every take, so it must only look into memory. Null: unlimited. */
  limitsOf: (tenant: string) => PlanLimits | null;
  /** App events that a limited tenant may send within a minute, and at once. */
  appPerMinute: number;
  /** Milliseconds of a monotonic clock. */
  now: () => number;
  /** Called for every rejection. */
  onReject?: (kind: RateKind) => void;
}

interface TenantBucket extends Bucket {
  readonly kind: RateKind;
  readonly tenant: string;
  /** Tokens granted here that have not been reported to the other processes. */
  unsent: number;
}

export class TenantLimits implements RateLimits {
  readonly #deps: TenantLimitsDeps;
  readonly #buckets: Record<RateKind, Map<string, TenantBucket>> = {
    ingest: new Map(),
    api: new Map(),
    app: new Map(),
    backfill: new Map(),
  };
  /** Buckets with unreported tokens, each once. */
  #spending: TenantBucket[] = [];
  #onSpent: () => void = () => undefined;

  constructor(deps: TenantLimitsDeps) {
    this.#deps = deps;
  }

  /**
   * Takes `cost` tokens (a whole number above 0) if the tenant's bucket grants them; see bucket.ts
   * for a cost above the capacity.
   * @returns the verdict with the headers of the response, in whole seconds; Retry-After is when
   * this very cost would be granted
   */
  take(kind: RateKind, tenant: string, cost: number): RateVerdict {
    const bucket = this.#bucketOf(kind, tenant);
    if (bucket === null) return UNLIMITED;
    const allowed = take(bucket, cost);
    if (allowed) this.#note(bucket, cost);
    else this.#deps.onReject?.(kind);
    const headers: Record<string, string> = {
      'RateLimit-Limit': String(bucket.per_minute),
      'RateLimit-Remaining': String(remaining(bucket)),
      'RateLimit-Reset': String(secondsUntilFull(bucket)),
    };
    if (!allowed) headers['Retry-After'] = String(Math.max(1, secondsUntilGranted(bucket, cost)));
    return { allowed, headers };
  }

  /**
   * Calls the listener when the first token is granted after takeSpent has left nothing. There is
   * one listener, which must not throw.
   */
  onSpent(listener: () => void): void {
    this.#onSpent = listener;
  }

  /**
   * Returns what has been granted since the last call, of at most tenantsMax tenants. Call it again
   * until it returns nothing.
   */
  takeSpent(tenantsMax: number): Spent[] {
    return this.#spending.splice(0, tenantsMax).map((bucket) => {
      const { kind, tenant, unsent: tokens } = bucket;
      bucket.unsent = 0;
      return { kind, tenant, tokens };
    });
  }

  /** Debits tokens that another process has granted. */
  debit(spent: readonly Spent[]): void {
    for (const { kind, tenant, tokens } of spent) {
      const bucket = this.#bucketOf(kind, tenant);
      if (bucket !== null) debit(bucket, tokens);
    }
  }

  /**
   * Returns the buckets that are not full, at most tenantsMax: the state that a starting process
   * needs.
   */
  state(tenantsMax: number): Missing[] {
    const found: Missing[] = [];
    for (const kind of KINDS) {
      for (const bucket of this.#buckets[kind].values()) {
        if (found.length >= tenantsMax) return found;
        refill(bucket, this.#deps.now());
        const units = missing(bucket);
        if (units > 0) found.push({ kind, tenant: bucket.tenant, units });
      }
    }
    return found;
  }

  /** Adopts the state of another process where its buckets are emptier. */
  adopt(state: readonly Missing[]): void {
    for (const { kind, tenant, units } of state) {
      const bucket = this.#bucketOf(kind, tenant);
      if (bucket !== null) leaveMissing(bucket, units);
    }
  }

  /**
   * Forgets full buckets, which equal new ones, and buckets of tenants that have no limit any more.
   */
  sweep(): void {
    const now = this.#deps.now();
    for (const kind of KINDS) {
      const buckets = this.#buckets[kind];
      for (const [tenant, bucket] of buckets) {
        refill(bucket, now);
        if (missing(bucket) <= 0 || this.#rateOf(kind, tenant) === null) buckets.delete(tenant);
      }
    }
  }

  /** Number of buckets. */
  get size(): number {
    return KINDS.reduce((sum, kind) => sum + this.#buckets[kind].size, 0);
  }

  /**
   * Returns the tenant's rate; null: unlimited. The limit on app events is the same for every
   * tenant, whatever its plan.
   */
  #rateOf(kind: RateKind, tenant: string): { per_minute: number; capacity: number } | null {
    if (kind === 'app') return { per_minute: this.#deps.appPerMinute, capacity: this.#deps.appPerMinute };
    const limits = this.#deps.limitsOf(tenant);
    if (limits === null) return null;
    return { per_minute: kind === 'api' ? limits.api_per_minute : limits.ingest_per_minute, capacity: limits.burst };
  }

  /**
   * Returns the tenant's bucket with its current limits, refilled; null where the tenant is
   * unlimited.
   */
  #bucketOf(kind: RateKind, tenant: string): TenantBucket | null {
    const rate = this.#rateOf(kind, tenant);
    if (rate === null) return null;
    const { per_minute, capacity } = rate;
    const now = this.#deps.now();
    const buckets = this.#buckets[kind];
    const known = buckets.get(tenant);
    if (known === undefined) {
      if (buckets.size >= BUCKETS_MAX) forgetOldest(buckets);
      const bucket: TenantBucket = { ...fullBucket(per_minute, capacity, now), kind, tenant, unsent: 0 };
      buckets.set(tenant, bucket);
      return bucket;
    }
    refill(known, now);
    if (known.per_minute !== per_minute || known.capacity !== capacity) rescale(known, per_minute, capacity);
    return known;
  }

  #note(bucket: TenantBucket, cost: number): void {
    bucket.unsent += cost;
    if (bucket.unsent > cost) return;
    this.#spending.push(bucket);
    if (this.#spending.length === 1) this.#onSpent();
  }
}

function forgetOldest(buckets: Map<string, TenantBucket>): void {
  for (const tenant of buckets.keys()) {
    buckets.delete(tenant);
    return;
  }
}
