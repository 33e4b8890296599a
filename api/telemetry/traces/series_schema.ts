// Request and response shapes of the series of traces over time.
import { z } from 'zod';
import { filterParams, textsParam } from './filter_params.ts';

const BUCKETS_MAX = 400;
const BUCKETS_DEFAULT = 100;
const TOP_MAX = 20;
const TOP_DEFAULT = 8;
/** Values that may be named; `top` bounds the values that are found. */
const NAMED_MAX = 50;
const GROUPS = ['outcome', 'agent_id', 'model', 'root_span_name', 'session_id', 'user_id'] as const;

const integerParam = ([min, max]: readonly [number, number], given: number, description: string) => {
  const error = `must be an integer between ${min} and ${max}`;
  return z
    .string()
    .regex(/^\d{1,4}$/, { error })
    .transform(Number)
    .pipe(z.int().min(min, { error }).max(max, { error }))
    .default(given)
    .meta({ type: 'integer', minimum: min, maximum: max, default: given, description });
};

export const seriesQuery = z.object({
  ...filterParams,
  group_by: z.enum(GROUPS).optional().describe('Splits the series by the values of a field'),
  groups: textsParam({
    description:
      'Values of the field of `group_by` that get a series each, in this order, instead of those with the most traces. Traces with other values are left out',
    max: NAMED_MAX,
  }),
  buckets: integerParam(
    [2, BUCKETS_MAX],
    BUCKETS_DEFAULT,
    'Maximum number of buckets; the width of a bucket is the smallest of 1 s, 5 s, 15 s, 1 min, 5 min, 15 min, 1 h, 3 h, 6 h, 12 h, 1, 7 and 30 days that needs no more',
  ),
  top: integerParam([1, TOP_MAX], TOP_DEFAULT, 'Groups with the most traces that get a series of their own'),
});
export type SeriesQuery = z.output<typeof seriesQuery>;

const whole = (description: string) => z.array(z.int()).describe(description);
const millis = (description: string) => z.array(z.number().nullable()).describe(description);

export const series = z
  .object({
    buckets: z.array(z.iso.datetime()).describe('Start of each bucket, oldest first'),
    series: z
      .array(
        z.object({
          group: z
            .string()
            .nullable()
            .describe('Value of the field. null without group_by, and for traces without a value'),
          other: z.boolean().describe('true for the values that are not among the top ones, taken together'),
          traces: whole('Traces that started in each bucket. With group_by=model, traces with a call of the model'),
          errors: whole('Traces with the outcome error. With group_by=model, traces with a failed call of the model'),
          timeouts: whole('Traces with the outcome timeout'),
          cost_usd: z.array(z.number()),
          input_tokens: whole('Input tokens'),
          output_tokens: whole('Output tokens'),
          p50_duration_ms: millis('Median of the durations; null without traces. With group_by=model, of the calls'),
          p95_duration_ms: millis('95th percentile'),
          p99_duration_ms: millis('99th percentile'),
        }),
      )
      .describe(
        'One series, or one for each of the top values and one for the others. Each has an entry for each bucket',
      ),
    time_to_first_token: z
      .object({ p50_ms: millis('Median by bucket; null without calls that say it'), p95_ms: millis('95th percentile') })
      .nullable()
      .describe(
        'Of the model calls of all the traces, by bucket of their start. null with `groups`, and if `partial` is true',
      ),
  })
  .meta({ id: 'TraceSeries' });
export type Series = z.infer<typeof series>;

export const seriesMeta = z.object({
  since: z.iso.datetime(),
  until: z.iso.datetime(),
  bucket_seconds: z.int(),
  partial: z
    .boolean()
    .describe('Whether time or memory ran out before time_to_first_token was read, which is then null'),
  approximate: z
    .array(z.string())
    .describe('Fields that are estimates: percentiles to about 1 %, and numbers of traces with group_by=model'),
});
