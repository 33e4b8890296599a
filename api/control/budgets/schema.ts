// Request and response shapes of budgets and their alerts.
import { z } from 'zod';
import { ALERT_CHANNELS, alertConfig, alertThreshold, limits } from '../../../schemas/records/budget.ts';

/** Maximum characters of an agent_id. An event with a longer one counts for no agent. */
const AGENT_ID_LENGTH_MAX = 512;
const URL_CHARS_MAX = 2048;
const status = z.enum(['ok', 'soft_exceeded', 'hard_exceeded']);

/** Limits in a request: a limit that is left out stays, null clears it. */
const givenLimits = limits.partial().strict();

export const putBudgetBody = z
  .object({ tokens: givenLimits, storage_mb: givenLimits, sandbox_seconds: givenLimits })
  .partial()
  .strict()
  .meta({ id: 'BudgetLimits' });
export type PutBudgetBody = z.infer<typeof putBudgetBody>;

/** Unpaired surrogates become U+FFFD, as they do when events are decoded. */
const agentId = z
  .string()
  .min(1)
  .max(AGENT_ID_LENGTH_MAX)
  .overwrite((text) => text.toWellFormed());
export const agentBudgetBody = z.object({ agent_id: agentId, tokens: givenLimits }).strict();
export type AgentBudgetBody = z.infer<typeof agentBudgetBody>;

const resource = limits.extend({
  used: z.number().describe('Use in the period, whether or not sampling kept the events'),
  percentage: z
    .number()
    .describe('Use in percent of the hard limit, or of the soft limit if no hard limit is set. 0 without a limit'),
  status,
});

export const budget = z
  .object({
    org_id: z.string(),
    period: z.enum(['month', 'fiscal_year']),
    period_start: z.iso.datetime(),
    period_end: z.iso.datetime().describe('When the counters restart'),
    tokens: resource,
    storage_mb: resource,
    sandbox_seconds: resource,
    plan_name: z.string(),
    total_cost_usd: z.number(),
  })
  .meta({ id: 'Budget' });
export type Budget = z.infer<typeof budget>;

export const agentBudget = z
  .object({ agent_id: z.string(), period_start: z.iso.datetime(), tokens: resource })
  .meta({ id: 'AgentBudget' });
export type AgentBudget = z.infer<typeof agentBudget>;

export const alertsBody = z
  .strictObject({
    channels: z.array(z.enum(ALERT_CHANNELS)).max(10),
    thresholds: z.array(z.strictObject(alertThreshold.shape)).max(50),
    webhook_url: z
      .string()
      .max(URL_CHARS_MAX)
      .nullish()
      .describe('Address that receives budget.threshold_breach. Required for the channel webhook'),
  })
  .meta({ id: 'AlertConfig' });
export type AlertsBody = z.infer<typeof alertsBody>;

export const alerts = z
  .object({
    channels: alertConfig.shape.channels,
    thresholds: alertConfig.shape.thresholds,
    webhook_url: z.string().nullable(),
    updated_at: z.iso.datetime().nullable().describe('null before the first setting'),
    secret: z.string().optional().describe('Key that signs the webhook requests. Shown only when webhook_url is new'),
  })
  .meta({ id: 'Alerts' });
export type Alerts = Omit<z.infer<typeof alerts>, 'secret'>;

export const sentTest = z.object({ event_id: z.string(), sent: z.array(z.enum(ALERT_CHANNELS)) });
