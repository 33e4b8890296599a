// The rate limits of tenants as the edge uses them. api/admission/rate counts, and shares the count
// between processes.

/**
 * Each tenant has one bucket of each kind. app counts events, the others requests; those with events
 * of the past take from backfill alone.
 */
export type RateKind = 'ingest' | 'api' | 'app' | 'backfill';

/** Prefix of the tenants that are persons at the portal. No organization id contains a colon. */
export const PORTAL_PREFIX = 'portal:';

export interface RateVerdict {
  allowed: boolean;
  /**
   * RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset; with Retry-After for a rejection. Empty
   * for an unlimited tenant.
   */
  headers: Readonly<Record<string, string>>;
}

export interface RateLimits {
  /** Takes `cost` from a tenant's bucket if it holds as much, or nothing. Never waits. */
  take: (kind: RateKind, tenant: string, cost: number) => RateVerdict;
}
