// What each plan allows, as data, and which of it a tenant has.

/** Limits of a tenant; each a whole number above 0. */
export interface PlanLimits {
  /** Ingest requests. */
  ingest_per_minute: number;
  /** All other requests. */
  api_per_minute: number;
  /** Requests at once, of either. */
  burst: number;
}

export const PLANS = {
  free: { ingest_per_minute: 60, api_per_minute: 60, burst: 30 },
  starter: { ingest_per_minute: 300, api_per_minute: 300, burst: 60 },
  pro: { ingest_per_minute: 1500, api_per_minute: 1500, burst: 200 },
} as const satisfies Record<string, PlanLimits>;

/** What of an org's record decides its limits. */
export interface PlannedOrg {
  plan_name: keyof typeof PLANS | 'enterprise';
  /** An enterprise org's own; null: it has none. */
  rate_limits: PlanLimits | null;
}

/** Persons without an org are tenants too, named so. No org id holds a colon. */
const PERSON_PREFIX = 'person:';

/**
 * Looks a tenant's limits up; null where it is unlimited. A person without an org, and an org whose record cannot be read,
 * have the free plan's.
 */
export function limitsOfTenant(orgs: {
  get: (org_id: string) => PlannedOrg | null;
}): (tenant: string) => PlanLimits | null {
  return (tenant) => {
    const org = tenant.startsWith(PERSON_PREFIX) ? null : orgs.get(tenant);
    if (org === null) return PLANS.free;
    return org.plan_name === 'enterprise' ? org.rate_limits : PLANS[org.plan_name];
  };
}
