// An org's budget as it stands in KV: limits, agents' own limits, alerts. Read by the API (to refuse) and by the pipeline
// (to tell). What was used is not here: it is the sum of what landed.
import { z } from 'zod';

/** Limits beyond this are no limits. */
const LIMIT_MAX = 1e15;
/** Agents with a limit of their own, of one org. */
export const AGENT_LIMITS_MAX = 2000;
const THRESHOLDS_MAX = 50;

export const RESOURCES = ['tokens', 'storage_mb', 'sandbox_seconds'] as const;
export type ResourceName = (typeof RESOURCES)[number];

const limit = z.int({ error: 'takes a whole number, or null for no limit' }).min(0).max(LIMIT_MAX).nullable();
export const limits = z.object({ soft_limit: limit, hard_limit: limit });
export type Limits = z.infer<typeof limits>;

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

/** How deliveries name the alert webhook of an org. */
export const ALERT_TARGET_ID = 'budget_alerts';
/** What the secret of an org's alert webhook is sealed for. */
export const alertSealContext = (org_id: string): string => `budget_alerts\n${org_id}`;

/** How an agent is named in records: an id as it is may be __proto__, which no record can hold. */
export const agentScope = (agent_id: string): string => `agent:${agent_id}`;

export const budgetRecord = z.object({
  org_id: z.string(),
  tokens: limits,
  storage_mb: limits,
  sandbox_seconds: limits,
  /** By agentScope: limits on tokens that take the place of the org's for the agent's events. */
  agents: z.record(z.string(), limits),
  alerts: alertConfig.nullable(),
  updated_at: z.iso.datetime(),
});
export type BudgetRecord = z.infer<typeof budgetRecord>;

/** What has come of an org's budget in one period: written once each, so that nothing is told twice. */
export const periodState = z.object({
  /** By resource, or agentScope for an agent's own limit: when its hard limit was first seen reached, and the org's cost then. */
  crossings: z.record(z.string(), z.object({ at: z.iso.datetime(), cost_usd: z.string(), hard_limit: z.number() })),
  /** Keys of the alerts that were told. */
  told: z.array(z.string()),
});
export type PeriodState = z.infer<typeof periodState>;

/** Periods are known by their start: a job may look at another one than today's, and a policy may choose a longer one. */
export const budgetState = z.object({ org_id: z.string(), periods: z.record(z.iso.datetime(), periodState) });
export type BudgetState = z.infer<typeof budgetState>;
