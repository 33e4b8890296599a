// The rate limits of each plan, and the lookup of a tenant's limits.

import { PORTAL_PREFIX } from '../../http/rate_limit.ts';

/** Rate limits of a tenant; each a whole number above 0. */
export interface PlanLimits {
  /** Ingest requests. */
  ingest_per_minute: number;
  /** All other requests. */
  api_per_minute: number;
  /** Requests at once, of either kind. */
  burst: number;
}

export const PLANS = {
  free: { ingest_per_minute: 60, api_per_minute: 60, burst: 30 },
  starter: { ingest_per_minute: 300, api_per_minute: 300, burst: 60 },
  pro: { ingest_per_minute: 1500, api_per_minute: 1500, burst: 200 },
} as const satisfies Record<string, PlanLimits>;

/** The fields of an organization's record that decide its rate limits. */
export interface PlannedOrg {
  plan_name: keyof typeof PLANS | 'enterprise';
  /** Limits of an enterprise organization; null: unlimited. */
  rate_limits: PlanLimits | null;
}

/**
 * Prefix of tenants that are persons without an organization. No organization id contains a colon.
 */
const PERSON_PREFIX = 'person:';

/**
 * Limits of a person in one organization at the portal. They are apart from the organization's, so that a person who
 * looks at traces takes nothing from its programs.
 */
const PORTAL: PlanLimits = { ingest_per_minute: 1200, api_per_minute: 1200, burst: 300 };

/**
 * Returns a function that looks up a tenant's limits; null: unlimited. A person without an
 * organization, and an organization whose record cannot be read, have the limits of the free plan.
 */
export function limitsOfTenant(orgs: {
  get: (org_id: string) => PlannedOrg | null;
}): (tenant: string) => PlanLimits | null {
  return (tenant) => {
    if (tenant.startsWith(PORTAL_PREFIX)) return PORTAL;
    const org = tenant.startsWith(PERSON_PREFIX) ? null : orgs.get(tenant);
    if (org === null) return PLANS.free;
    return limitsOfPlan(org);
  };
}

/** Returns the rate limits in force for an organization; null: unlimited. */
export function limitsOfPlan({ plan_name, rate_limits }: PlannedOrg): PlanLimits | null {
  return plan_name === 'enterprise' ? rate_limits : PLANS[plan_name];
}
