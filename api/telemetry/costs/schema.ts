// Request and response shapes of costs. Amounts are in USD, days in UTC.
import { z } from 'zod';
import { anomalyConfig } from '../../../schemas/records/cost_config.ts';
import { VALUE_OF_OUTCOMES_CHARS_MAX } from '../../../schemas/records/policy.ts';
import { listParam } from '../../http/route.ts';

const DAYS_MAX = 365;
const FORECAST_DAYS_MAX = 90;
/** Spans are read for it, not days of usage. */
const UNPRICED_DAYS_MAX = 90;
const DAYS_DEFAULT = 30;

const daysParam = (max: number, description: string) =>
  z
    .string()
    .regex(/^\d{1,4}$/, { error: `must be an integer between 1 and ${max}` })
    .transform(Number)
    .pipe(
      z
        .int()
        .min(1, { error: `must be an integer between 1 and ${max}` })
        .max(max, { error: `must be an integer between 1 and ${max}` }),
    )
    .default(DAYS_DEFAULT)
    .meta({ type: 'integer', minimum: 1, maximum: max, default: DAYS_DEFAULT, description });

const date = z.iso.date();
const orNone = z.string().nullable();

export const GROUPS = ['model', 'agent_id', 'realm', 'department'] as const;
export type Group = (typeof GROUPS)[number];

export const summaryQuery = z.object({
  days: daysParam(DAYS_MAX, 'Number of days up to and including today'),
  group_by: z.enum(GROUPS).default('model').describe('Dimension of a further breakdown, returned in by_<group_by>'),
});

const shareOf = (name: string) =>
  z.object({
    [name]: orNone.describe('null for costs without a value of this dimension'),
    cost_usd: z.number(),
    share: z.number().describe('Share of the total, 0 to 1'),
  });

export const summary = z
  .object({
    period_start: z.iso.datetime().describe('Start of the first day'),
    period_end: z.iso.datetime().describe('End of the last day, which is today'),
    total_cost_usd: z.number(),
    by_day: z
      .array(z.object({ date, cost_usd: z.number(), tokens: z.int() }))
      .describe('Every day of the period, by the day on which events began. The days add up to the total'),
    by_model: z.array(shareOf('model')).describe('Costliest first'),
    by_agent_id: z.array(shareOf('agent_id')).optional(),
    by_realm: z
      .array(shareOf('realm'))
      .optional()
      .describe("By attributes.realm, or the realm of the agent's metadata"),
    by_department: z
      .array(shareOf('department'))
      .optional()
      .describe("By attributes.department, or the department of the agent's metadata"),
  })
  .meta({ id: 'CostSummary' });
export type Summary = z.infer<typeof summary>;

export const summaryMeta = z.object({
  truncated: z
    .boolean()
    .describe('Whether a breakdown shows only its costliest groups. The total and the days cover all'),
});

/** Groups of a cost series; the costs of all further groups are one series. */
export const SERIES_GROUPS_MAX = 12;
const DIMENSIONS_MAX = 2;

export const seriesQuery = z.object({
  days: daysParam(DAYS_MAX, 'Number of days up to and including today'),
  group_by: listParam(z.enum(GROUPS))
    .pipe(
      z
        .array(z.enum(GROUPS))
        .min(1, { error: `must name 1 or 2 of ${GROUPS.join(', ')}` })
        .max(DIMENSIONS_MAX, { error: `must name 1 or 2 of ${GROUPS.join(', ')}` })
        .refine((names) => new Set(names).size === names.length, { error: 'must not name a dimension twice' }),
    )
    .default(['model'])
    .describe('One or two dimensions, comma-separated'),
});
export type SeriesQuery = z.output<typeof seriesQuery>;

const costSeries = {
  cost_usd: z.number(),
  tokens: z.int(),
  previous_cost_usd: z.number().describe('Cost of the period of the same length before'),
  previous_tokens: z.int(),
  by_day: z.object({ cost_usd: z.array(z.number()), tokens: z.array(z.int()) }).describe('One value for each of dates'),
};
export const series = z
  .object({
    period_start: z.iso.datetime().describe('Start of the first day'),
    period_end: z.iso.datetime().describe('End of the last day, which is today'),
    group_by: z.array(z.enum(GROUPS)),
    dates: z.array(date),
    groups: z
      .array(
        z.object({
          group: z
            .partialRecord(z.enum(GROUPS), orNone)
            .describe('Value of each dimension; null for costs without a value of it'),
          ...costSeries,
        }),
      )
      .describe(`Costliest first, at most ${SERIES_GROUPS_MAX}`),
    other: z.object(costSeries).describe('All further groups together'),
    total: z.object(costSeries),
  })
  .meta({ id: 'CostSeries' });
export type Series = z.infer<typeof series>;

export const unpricedQuery = z.object({
  days: daysParam(UNPRICED_DAYS_MAX, 'Number of days up to and including today'),
});
const unpricedModel = z.object({
  model: z.string(),
  calls: z.int().min(1),
  input_tokens: z.int().min(0),
  output_tokens: z.int().min(0),
  last_call_at: z.iso.datetime(),
});
export const unpriced = z.array(unpricedModel).describe('Models with the most tokens first, at most 200');
export type Unpriced = z.infer<typeof unpriced>;

export const forecastQuery = z.object({
  days: daysParam(FORECAST_DAYS_MAX, 'Number of days to forecast, from today on'),
});

export const forecast = z
  .object({
    horizon_days: z.int(),
    series: z.array(
      z.object({
        date,
        predicted_usd: z.number(),
        lower_ci: z.number().describe('Lower end of the 95% prediction interval, at least 0'),
        upper_ci: z.number(),
      }),
    ),
    model: z.object({
      type: z.literal('ols'),
      r_squared: z
        .number()
        .nullable()
        .describe('Share of the variance that the line explains; null with mean_fallback'),
    }),
    mean_fallback: z
      .boolean()
      .describe('true with less than 14 days of data, or days that do not vary: each day is forecast as their mean'),
    days_of_data: z.int().describe('Whole days before today that the forecast is computed from, at most 90'),
  })
  .meta({ id: 'Forecast' });
export type ForecastAnswer = z.infer<typeof forecast>;

export const anomaly = z
  .object({
    anomaly_id: z.string(),
    date: date.describe('Day of the cost'),
    detected_at: z.iso.datetime().describe('When the anomaly was first detected'),
    kind: z.literal('z_score'),
    z: z
      .number()
      .describe(
        'Distance from the mean in sample standard deviations, at most 99. Negative for a day that cost too little',
      ),
    expected_usd: z.number().describe('Mean of the preceding days'),
    actual_usd: z.number(),
    attributed_to: z
      .object({ model: orNone, agent_id: orNone })
      .describe('Model and agent whose costs deviate most from their own means'),
  })
  .meta({ id: 'Anomaly' });
export type AnomalyItem = z.infer<typeof anomaly>;

const numberParam = (field: z.ZodType<number, number>, error: string) =>
  z
    .string()
    .regex(/^\d{1,3}(\.\d{1,6})?$/, { error })
    .transform(Number)
    .pipe(field);
export const anomalyPreviewQuery = z.object({
  z_threshold: numberParam(anomalyConfig.shape.z_threshold, 'must be a number above 0 and at most 99')
    .optional()
    .meta({ type: 'number', description: 'The threshold of the organization unless given' }),
  lookback_days: numberParam(anomalyConfig.shape.lookback_days, 'must be an integer between 7 and 365')
    .optional()
    .meta({ type: 'integer', description: 'The look-back of the organization unless given' }),
  days: daysParam(DAYS_MAX, 'Number of days up to and including today. Today itself is not examined'),
});
export type AnomalyPreviewQuery = z.output<typeof anomalyPreviewQuery>;

export const anomalyPreview = z
  .object({
    ...anomalyConfig.shape,
    days: z.array(anomaly.pick({ date: true, z: true, expected_usd: true, actual_usd: true })).describe('Oldest first'),
  })
  .meta({ id: 'AnomalyPreview' });
export type AnomalyPreview = z.infer<typeof anomalyPreview>;

export const outcomesQuery = z.object({
  days: daysParam(DAYS_MAX, 'Number of days up to and including today'),
  value_of_outcomes: z
    .string()
    .trim()
    .min(1)
    .max(VALUE_OF_OUTCOMES_CHARS_MAX)
    .optional()
    .describe('Formula to compute the ROI with instead of that of the policy, such as tickets * 12.5 + leads * 40'),
});
export type OutcomesQuery = z.output<typeof outcomesQuery>;

export const outcomes = z
  .object({
    departments: z.array(
      z.object({
        department: z.string(),
        cost_usd: z.number(),
        outcomes: z.record(z.string(), z.number()).describe('Sums of attributes.outcomes, by name'),
        cost_per_outcome_usd: z
          .number()
          .nullable()
          .describe('Cost divided by the sum of all outcomes; null if that sum is 0'),
        roi: z
          .number()
          .nullable()
          .describe(
            '(value - cost) / cost, with the value from value_of_outcomes of the policy. null if the cost is 0 or the outcomes have no value',
          ),
      }),
    ),
  })
  .meta({ id: 'OutcomeRollup' });
export type OutcomeRollup = z.infer<typeof outcomes>;
