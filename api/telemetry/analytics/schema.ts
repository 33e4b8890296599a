// Request and response shapes of analytics. The names of measures, dimensions and fields are checked
// by sql/analytics/check.ts, because they depend on the view.
import { z } from 'zod';
import { AGGS, VIEWS } from '../../../sql/analytics/catalog.ts';
import { GRANULARITIES, isTimeZone } from '../../../sql/analytics/time_zone.ts';
import { FILTER_OPS } from '../../../sql/attribute_path.ts';
import { timeParam } from '../../http/time_param.ts';

export const MEASURES_MAX = 8;
export const GROUP_BY_MAX = 2;
export const FILTERS_MAX = 10;
export const VALUES_MAX = 100;
export const TOP_MAX = 100;
export const TOP_DEFAULT = 10;
const NAME_CHARS_MAX = 64;
const FIELD_CHARS_MAX = 300;
const VALUE_CHARS_MAX = 1024;

const name = z.string().regex(/^[a-z][a-z0-9_]{0,63}$/, {
  error: `must be a name of up to ${NAME_CHARS_MAX} characters: a-z, 0-9 and _, with a letter first`,
});
const filterValue = z.union([z.string().max(VALUE_CHARS_MAX), z.number(), z.boolean()], {
  error: `must be a text of up to ${VALUE_CHARS_MAX} characters, a number, true or false`,
});

export const analyticsQuery = z.object({
  view: z.enum(VIEWS).describe('`spans`, `traces`, `scores`, or `usage` for cost and tokens that outlive the spans'),
  measures: z
    .array(
      z.object({
        measure: name.describe('A measure of the view'),
        agg: z.enum(AGGS).optional().describe('The first aggregation of the measure unless given'),
        as: name.optional().describe('Name of the column; measure and aggregation, joined by _, unless given'),
      }),
    )
    .min(1, { error: 'must have at least one measure' })
    .max(MEASURES_MAX, { error: `must have at most ${MEASURES_MAX} measures` }),
  group_by: z
    .array(name)
    .max(GROUP_BY_MAX, { error: `must have at most ${GROUP_BY_MAX} dimensions` })
    .default([])
    .describe('Dimensions of the view'),
  filters: z
    .array(
      z.object({
        field: z
          .string()
          .max(FIELD_CHARS_MAX)
          .describe('A dimension or a filter field of the view, or `attributes.<path>` in the view spans'),
        op: z.enum(FILTER_OPS).default('eq'),
        value: z
          .union([filterValue, z.array(filterValue).min(1).max(VALUES_MAX)], {
            error: `must be a text, a number, true or false; with in and not_in a list of 1 to ${VALUES_MAX} of them`,
          })
          .default(true)
          .describe('A list with `in` and `not_in`; true or false with `exists`'),
      }),
    )
    .max(FILTERS_MAX, { error: `must have at most ${FILTERS_MAX} filters` })
    .default([])
    .describe('Rows that match every filter count'),
  granularity: z
    .enum(['auto', ...GRANULARITIES])
    .optional()
    .describe('Length of a time bucket. One row for each group unless given'),
  timezone: z
    .string()
    .max(NAME_CHARS_MAX)
    .refine(isTimeZone, { error: 'must be an IANA time zone, such as Europe/Berlin' })
    .default('UTC')
    .describe('Time zone in which days, weeks and months begin'),
  since: timeParam.describe('Start of the time, inclusive'),
  until: timeParam.optional().describe('End of the time, exclusive; the end of the present hour unless given'),
  top: z
    .int()
    .min(1, { error: `must be an integer between 1 and ${TOP_MAX}` })
    .max(TOP_MAX, { error: `must be an integer between 1 and ${TOP_MAX}` })
    .default(TOP_DEFAULT)
    .describe('Number of groups with the largest first measure. All others together are the group `other`'),
  fill: z
    .enum(['none', 'zero', 'null'])
    .default('none')
    .describe('Adds a row for each bucket of a group without data: `zero` puts 0 where a sum is 0 and null elsewhere'),
  compare: z.enum(['previous_period']).optional().describe('Also returns the period of the same length before'),
});
export type AnalyticsBody = z.output<typeof analyticsQuery>;

const cell = z.union([z.string(), z.number(), z.null(), z.array(z.array(z.number()))]);
const rows = z.array(z.array(cell)).describe('Values in the order of the columns');
const totals = z.array(cell).describe('Measures of everything that matches, in the order of their columns');

export const analyticsResult = z
  .object({
    columns: z.array(
      z.object({
        name: z.string(),
        type: z.enum(['time', 'text', 'number', 'histogram']),
        unit: z.string().nullable(),
        role: z.enum(['time', 'dimension', 'measure']),
      }),
    ),
    rows,
    totals,
    previous: z
      .object({ since: z.iso.datetime(), until: z.iso.datetime(), rows, totals })
      .optional()
      .describe('The period before, with the same groups'),
  })
  .meta({ id: 'AnalyticsResult' });
export type AnalyticsResultBody = z.infer<typeof analyticsResult>;
export type Cell = z.infer<typeof cell>;

export const analyticsMeta = z.object({
  granularity: z.enum(GRANULARITIES).nullable().describe('null for one row a group'),
  since: z.iso.datetime(),
  until: z.iso.datetime(),
  source: z
    .enum(['usage', 'rollup', 'rows'])
    .describe('`rollup` read hours, `rows` read spans, traces or scores, `usage` read days of use'),
  approximate: z.boolean().describe('True when a measure is an estimate: a percentile, a distinct count, a histogram'),
  truncated: z.boolean().describe('True when groups beyond `top` are in the group `other`'),
  took_ms: z.int(),
});

const described = z.object({ name: z.string(), description: z.string() });
export const analyticsSchema = z
  .object({
    views: z.array(
      z.object({
        name: z.enum(VIEWS),
        measures: z.array(described.extend({ unit: z.string(), aggs: z.array(z.enum(AGGS)) })),
        dimensions: z.array(described),
        filters: z.array(z.string()).describe('Numbers that filters compare, besides the dimensions'),
        attributes: z.boolean().describe('True when filters on `attributes.<path>` are possible'),
        granularities: z.array(z.enum(GRANULARITIES)),
      }),
    ),
    ops: z.array(z.enum(FILTER_OPS)),
    bounds: z.record(z.string(), z.int()),
  })
  .meta({ id: 'AnalyticsSchema' });
