// The limits of a tenant's rate as the edge sees them. Who counts, and how processes share the count, is the limits slice's.

/** Each tenant has one bucket of each kind. app counts events, the others requests. */
export type RateKind = 'ingest' | 'api' | 'app';

export interface RateVerdict {
  allowed: boolean;
  /** RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset; with Retry-After where it is refused. Empty for an unlimited tenant. */
  headers: Readonly<Record<string, string>>;
}

export interface RateLimits {
  /** Takes `cost` from a tenant's bucket if it holds as much; takes nothing otherwise. Never waits. */
  take: (kind: RateKind, tenant: string, cost: number) => RateVerdict;
}
