// Budget of an organization in KV: limits, limits of single agents, alerts. The API reads it to
// reject, the pipeline to notify. Use is not part of it: that is the sum of what has landed.
import { z } from 'zod';

/** Largest limit on tokens, megabytes and seconds. */
export const LIMIT_MAX = 1e15;
/** Largest limit in USD. */
export const USD_LIMIT_MAX = 1e9;
/** Decimals of a limit in USD: those of stored costs. */
const USD_DECIMALS = 12;
/** Maximum number of agents of one organization with a limit of their own. */
export const AGENT_LIMITS_MAX = 2000;
const THRESHOLDS_MAX = 50;

export const RESOURCES = ['tokens', 'storage_mb', 'sandbox_seconds', 'cost_usd'] as const;
export type ResourceName = (typeof RESOURCES)[number];
/** Resources on which an agent can have limits of its own. */
export const AGENT_RESOURCES = ['tokens', 'cost_usd'] as const;
export type AgentResourceName = (typeof AGENT_RESOURCES)[number];

const limit = z.int({ error: 'must be a whole number, or null for no limit' }).min(0).max(LIMIT_MAX).nullable();
export const limits = z.object({ soft_limit: limit, hard_limit: limit });
export type Limits = z.infer<typeof limits>;

/** Returns true if the shortest decimal text of the amount has at most 12 decimals. */
export function fitsUsdDecimals(usd: number): boolean {
  const [digits = '', exponent = '0'] = String(usd).split('e');
  return (digits.split('.')[1]?.length ?? 0) - Number(exponent) <= USD_DECIMALS;
}

const USD_ERROR = `must be an amount in USD from 0 to ${USD_LIMIT_MAX} with at most ${USD_DECIMALS} decimals`;
/** A limit in USD. */
export const usdLimit = z
  .number({ error: USD_ERROR })
  .min(0, USD_ERROR)
  .max(USD_LIMIT_MAX, USD_ERROR)
  .refine(fitsUsdDecimals, USD_ERROR);
const nullableUsdLimit = usdLimit.nullable();
export const usdLimits = z.object({ soft_limit: nullableUsdLimit, hard_limit: nullableUsdLimit });

export const NO_LIMITS: Limits = Object.freeze({ soft_limit: null, hard_limit: null });

export const ALERT_CHANNELS = ['email', 'webhook'] as const;
export const SEVERITIES = ['info', 'warning', 'critical'] as const;
export type Severity = (typeof SEVERITIES)[number];

export const alertThreshold = z.object({
  resource: z.enum(RESOURCES),
  percent: z.number(),
  severity: z.enum(SEVERITIES),
});
export type AlertThreshold = z.infer<typeof alertThreshold>;

export const alertConfig = z.object({
  channels: z.array(z.enum(ALERT_CHANNELS)),
  thresholds: z.array(alertThreshold).max(THRESHOLDS_MAX),
  webhook_url: z.string().nullable(),
  /** Signing secret of the alert webhook, sealed; null without a webhook. */
  sealed_secret: z.string().nullable(),
});
export type AlertConfig = z.infer<typeof alertConfig>;

/** Id of an organization's alert webhook in deliveries. */
export const ALERT_TARGET_ID = 'budget_alerts';
/** Returns the sealing context of the secret of an organization's alert webhook. */
export const alertSealContext = (org_id: string): string => `budget_alerts\n${org_id}`;

/**
 * Returns the name of an agent in records: an id alone may be __proto__, which no record can hold.
 */
export const agentScope = (agent_id: string): string => `agent:${agent_id}`;

/**
 * Returns the name of a limit in states and keys of alerts: the resource, or the agent whose own
 * limit it is. Limits of agents on tokens came first and are named by the agent alone.
 */
export function limitScope(resource: ResourceName, agent_id: string | null): string {
  if (agent_id === null) return resource;
  return resource === 'tokens' ? agentScope(agent_id) : `${resource}:${agentScope(agent_id)}`;
}

export const budgetRecord = z.object({
  org_id: z.string(),
  tokens: limits,
  storage_mb: limits,
  sandbox_seconds: limits,
  /** Records from before limits in USD have none. */
  cost_usd: usdLimits.default(NO_LIMITS),
  /**
   * Token limits of single agents by agentScope, which replace the organization's for the agent's
   * events.
   */
  agents: z.record(z.string(), limits),
  /** Limits of single agents in USD by agentScope, which replace the organization's as well. */
  agent_costs: z.record(z.string(), usdLimits).default({}),
  alerts: alertConfig.nullable(),
  updated_at: z.iso.datetime(),
});
export type BudgetRecord = z.infer<typeof budgetRecord>;

/** Returns the budget of an organization that never set one. */
export const unlimited = (org_id: string): BudgetRecord => ({
  org_id,
  tokens: NO_LIMITS,
  storage_mb: NO_LIMITS,
  sandbox_seconds: NO_LIMITS,
  cost_usd: NO_LIMITS,
  agents: {},
  agent_costs: {},
  alerts: null,
  updated_at: new Date(0).toISOString(),
});

/**
 * What was sent for a budget in one period. Each entry is written once, so that nothing is sent
 * twice.
 */
export const periodState = z.object({
  /**
   * When each hard limit was first seen reached, and the organization's cost then, by limitScope.
   */
  crossings: z.record(z.string(), z.object({ at: z.iso.datetime(), cost_usd: z.string(), hard_limit: z.number() })),
  /** Keys of the alerts that were sent. */
  told: z.array(z.string()),
});
export type PeriodState = z.infer<typeof periodState>;

/**
 * States by the start of their period: a job may examine another period than today's, and a policy
 * may choose a longer one.
 */
export const budgetState = z.object({ org_id: z.string(), periods: z.record(z.iso.datetime(), periodState) });
export type BudgetState = z.infer<typeof budgetState>;
