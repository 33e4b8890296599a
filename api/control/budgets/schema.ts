// Shapes of budgets: what requests bring and what answers show.
import { z } from 'zod';
import { ALERT_CHANNELS, alertConfig, alertThreshold, limits } from '../../../schemas/records/budget.ts';

/** Events with a longer agent_id are of no agent. */
const AGENT_ID_LENGTH_MAX = 512;
const URL_CHARS_MAX = 2048;
const status = z.enum(['ok', 'soft_exceeded', 'hard_exceeded']);

/** Limits as given: what is left out stays, null takes a limit away. */
const givenLimits = limits.partial().strict();

export const putBudgetBody = z
  .object({ tokens: givenLimits, storage_mb: givenLimits, sandbox_seconds: givenLimits })
  .partial()
  .strict()
  .meta({ id: 'BudgetLimits' });
export type PutBudgetBody = z.infer<typeof putBudgetBody>;

/** As events are decoded: halves of surrogate pairs become U+FFFD. */
const agentId = z
  .string()
  .min(1)
  .max(AGENT_ID_LENGTH_MAX)
  .overwrite((text) => text.toWellFormed());
export const agentBudgetBody = z.object({ agent_id: agentId, tokens: givenLimits }).strict();
export type AgentBudgetBody = z.infer<typeof agentBudgetBody>;

const resource = limits.extend({
  used: z.number().describe('In the period, whatever sampling kept'),
  percentage: z
    .number()
    .describe('Of the hard limit, of the soft one where there is no hard one, 0 where there is none'),
  status,
});

export const budget = z
  .object({
    org_id: z.string(),
    period: z.enum(['month', 'fiscal_year']),
    period_start: z.iso.datetime(),
    period_end: z.iso.datetime().describe('When the counters start over'),
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
      .describe('Gets budget.threshold_breach; needed for the channel webhook'),
  })
  .meta({ id: 'AlertConfig' });
export type AlertsBody = z.infer<typeof alertsBody>;

export const alerts = z
  .object({
    channels: alertConfig.shape.channels,
    thresholds: alertConfig.shape.thresholds,
    webhook_url: z.string().nullable(),
    updated_at: z.iso.datetime().nullable().describe('null where none were ever set'),
    secret: z.string().optional().describe('Signs what the webhook gets; shown once, when its address is new'),
  })
  .meta({ id: 'Alerts' });
export type Alerts = Omit<z.infer<typeof alerts>, 'secret'>;

export const sentTest = z.object({ event_id: z.string(), sent: z.array(z.enum(ALERT_CHANNELS)) });
