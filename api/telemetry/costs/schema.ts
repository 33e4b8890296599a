// Shapes of the cost endpoints: what they take, and what they answer. Amounts are USD, days are UTC.
import { z } from 'zod';

const DAYS_MAX = 365;
const FORECAST_DAYS_MAX = 90;
const DAYS_DEFAULT = 30;

const daysParam = (max: number, description: string) =>
  z
    .string()
    .regex(/^\d{1,4}$/, { error: `takes a whole number from 1 to ${String(max)}` })
    .transform(Number)
    .pipe(
      z
        .int()
        .min(1, { error: `takes a whole number from 1 to ${String(max)}` })
        .max(max, { error: `takes a whole number from 1 to ${String(max)}` }),
    )
    .default(DAYS_DEFAULT)
    .meta({ type: 'integer', minimum: 1, maximum: max, default: DAYS_DEFAULT, description });

const date = z.iso.date();
const orNone = z.string().nullable();

export const GROUPS = ['model', 'agent_id', 'realm', 'department'] as const;
export type Group = (typeof GROUPS)[number];

export const summaryQuery = z.object({
  days: daysParam(DAYS_MAX, 'Days up to today, today included'),
  group_by: z.enum(GROUPS).default('model').describe('A further breakdown, in by_<group_by>'),
});

const shareOf = (name: string) =>
  z.object({
    [name]: orNone.describe('null for what names none'),
    cost_usd: z.number(),
    share: z.number().describe('Part of the total, 0 to 1'),
  });

export const summary = z
  .object({
    period_start: z.iso.datetime().describe('First instant of the first day'),
    period_end: z.iso.datetime().describe('First instant after the last day, which is today'),
    total_cost_usd: z.number(),
    by_day: z
      .array(z.object({ date, cost_usd: z.number(), tokens: z.int() }))
      .describe('Every day of the period, by the day on which events began; days add up to the total'),
    by_model: z.array(shareOf('model')).describe('Costliest first'),
    by_agent_id: z.array(shareOf('agent_id')).optional(),
    by_realm: z
      .array(shareOf('realm'))
      .optional()
      .describe("By attributes.realm, else the realm of the agent's metadata"),
    by_department: z
      .array(shareOf('department'))
      .optional()
      .describe("By attributes.department, else the department of the agent's metadata"),
  })
  .meta({ id: 'CostSummary' });
export type Summary = z.infer<typeof summary>;

export const summaryMeta = z.object({
  truncated: z
    .boolean()
    .describe('Whether only the costliest of very many groups are shown; the total and the days hold all'),
});

export const forecastQuery = z.object({ days: daysParam(FORECAST_DAYS_MAX, 'Days to forecast, from today on') });

export const forecast = z
  .object({
    horizon_days: z.int(),
    series: z.array(
      z.object({
        date,
        predicted_usd: z.number(),
        lower_ci: z.number().describe('Lower end of the 95 % prediction interval, at least 0'),
        upper_ci: z.number(),
      }),
    ),
    model: z.object({
      type: z.literal('ols'),
      r_squared: z
        .number()
        .nullable()
        .describe('Share of the variation that the line explains; null where the mean is used'),
    }),
    mean_fallback: z
      .boolean()
      .describe('Under 14 days of data, or days that do not vary: each day is forecast as their mean'),
  })
  .meta({ id: 'Forecast' });
export type ForecastAnswer = z.infer<typeof forecast>;

export const anomaly = z
  .object({
    anomaly_id: z.string(),
    date: date.describe('Day whose cost it is'),
    detected_at: z.iso.datetime().describe('When it was found first'),
    kind: z.literal('z_score'),
    z: z
      .number()
      .describe(
        'Distance from the mean in sample standard deviations, at most 99; negative for a day that cost too little',
      ),
    expected_usd: z.number().describe('Mean of the days before'),
    actual_usd: z.number(),
    attributed_to: z
      .object({ model: orNone, agent_id: orNone })
      .describe('The model and agent that went furthest from their own mean'),
  })
  .meta({ id: 'Anomaly' });
export type AnomalyItem = z.infer<typeof anomaly>;

export const outcomesQuery = z.object({ days: daysParam(DAYS_MAX, 'Days up to today, today included') });

export const outcomes = z
  .object({
    departments: z.array(
      z.object({
        department: z.string(),
        cost_usd: z.number(),
        outcomes: z.record(z.string(), z.number()).describe('Sums of attributes.outcomes, by name'),
        cost_per_outcome_usd: z.number().nullable().describe('Cost over the sum of all outcomes; null where that is 0'),
        roi: z
          .number()
          .nullable()
          .describe(
            "(value - cost) / cost, by the policy's value_of_outcomes; null where cost is 0 or outcomes have no value",
          ),
      }),
    ),
  })
  .meta({ id: 'OutcomeRollup' });
export type OutcomeRollup = z.infer<typeof outcomes>;
