// Request and response shapes of budgets and their alerts.
import { z } from 'zod';
import {
  ALERT_CHANNELS,
  alertConfig,
  alertThreshold,
  LIMIT_MAX,
  fitsUsdDecimals,
  limits,
  RESOURCES,
  USD_LIMIT_MAX,
  usdLimits,
} from '../../../schemas/records/budget.ts';

/** Maximum characters of an agent_id. An event with a longer one counts for no agent. */
const AGENT_ID_LENGTH_MAX = 512;
const URL_CHARS_MAX = 2048;
const status = z.enum(['ok', 'soft_exceeded', 'hard_exceeded']);

/** Limits in a request: a limit that is left out stays, null clears it. */
const givenLimits = limits.partial().strict();
const givenUsdLimits = usdLimits.partial().strict();

export const putBudgetBody = z
  .object({ tokens: givenLimits, storage_mb: givenLimits, sandbox_seconds: givenLimits, cost_usd: givenUsdLimits })
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
export const agentBudgetBody = z
  .object({ agent_id: agentId, tokens: givenLimits.optional(), cost_usd: givenUsdLimits.optional() })
  .strict()
  .refine(({ tokens, cost_usd }) => tokens !== undefined || cost_usd !== undefined, {
    path: ['tokens'],
    error: 'is required unless cost_usd is given',
  });
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
    cost_usd: resource.extend(usdLimits.shape),
    plan_name: z.string(),
    total_cost_usd: z.number(),
  })
  .meta({ id: 'Budget' });
export type Budget = z.infer<typeof budget>;

export const agentBudget = z
  .object({
    agent_id: z.string(),
    period_start: z.iso.datetime(),
    tokens: resource,
    cost_usd: resource.extend(usdLimits.shape),
  })
  .meta({ id: 'AgentBudget' });
export type AgentBudget = z.infer<typeof agentBudget>;

const LIMIT_ERROR = {
  error: `must be a whole number from 0 to ${LIMIT_MAX}, or for cost_usd an amount from 0 to ${USD_LIMIT_MAX} with at most 12 decimals`,
};
/** A limit in a query string. */
const limitParam = z
  .string()
  .regex(/^\d{1,16}(?:\.\d{1,12})?$/, LIMIT_ERROR)
  .transform(Number)
  .pipe(z.number(LIMIT_ERROR).max(LIMIT_MAX, LIMIT_ERROR));

export const previewQuery = z
  .object({
    resource: z.enum(RESOURCES).default('tokens'),
    hard_limit: limitParam.meta({ type: 'number', minimum: 0, maximum: LIMIT_MAX }),
    agent_id: agentId.optional().describe('Preview a limit of this agent; for tokens and cost_usd'),
  })
  .refine(
    ({ resource, hard_limit }) =>
      resource === 'cost_usd'
        ? hard_limit <= USD_LIMIT_MAX && fitsUsdDecimals(hard_limit)
        : Number.isInteger(hard_limit),
    { path: ['hard_limit'], ...LIMIT_ERROR },
  )
  .refine(({ resource, agent_id }) => agent_id === undefined || resource === 'tokens' || resource === 'cost_usd', {
    path: ['agent_id'],
    error: 'is accepted for the resources tokens and cost_usd only, as agents have limits on these only',
  });
export type PreviewQuery = z.output<typeof previewQuery>;

export const budgetPreview = z
  .object({
    resource: z.enum(RESOURCES),
    hard_limit: z.number(),
    agent_id: z.string().nullable(),
    periods: z
      .array(
        z.object({
          period_start: z.iso.datetime(),
          period_end: z.iso.datetime(),
          used: z.number().describe('Use in the period, in the unit of the limit'),
          reached_on: z.iso
            .date()
            .nullable()
            .describe('Day (UTC) on which use would have reached the limit; null if it would not'),
          beyond_limit: z.number().describe('Use beyond the limit'),
        }),
      )
      .describe('The current period first, then the two before it'),
  })
  .meta({ id: 'BudgetPreview' });
export type BudgetPreview = z.infer<typeof budgetPreview>;

const reached = z
  .object({
    expected: z.iso.date().nullable().describe('Day (UTC) on which use reaches the limit; null if not in the period'),
    earliest: z.iso.date().nullable().describe('The same at the upper end of the prediction interval'),
  })
  .nullable()
  .describe('null without such a limit');

export const budgetForecast = z
  .object({
    period_start: z.iso.datetime(),
    period_end: z.iso.datetime(),
    resources: z.array(
      z.object({
        resource: z.enum(RESOURCES),
        used: z.number().describe('Use in the period so far, in the unit of the limits'),
        soft_limit: z.number().nullable(),
        hard_limit: z.number().nullable(),
        by_day: z
          .array(z.object({ date: z.iso.date(), used: z.number() }))
          .describe('Use since the start of the period at the end of each day (UTC) up to today'),
        series: z
          .array(
            z.object({
              date: z.iso.date(),
              predicted: z.number(),
              lower_ci: z.number().describe('Lower end of the 95% prediction interval, at least the use so far'),
              upper_ci: z.number(),
            }),
          )
          .describe('Expected use since the start of the period at the end of each remaining day, today first'),
        soft_limit_reached: reached,
        hard_limit_reached: reached,
        r_squared: z
          .number()
          .nullable()
          .describe('Share of the variance that the line explains; null with mean_fallback'),
        mean_fallback: z
          .boolean()
          .describe(
            'true with less than 14 days of data, or days that do not vary: each day is forecast as their mean',
          ),
        days_of_data: z.int().describe('Whole days before today that the forecast is computed from, at most 90'),
      }),
    ),
  })
  .meta({ id: 'BudgetForecast' });
export type BudgetForecast = z.infer<typeof budgetForecast>;

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
