// Request and response shapes of the facets of the trace list.
import { z } from 'zod';
import { filterParams } from './filter_params.ts';
import { listParam } from '../../http/route.ts';

const FIELDS = [
  'outcome',
  'agent_id',
  'root_span_name',
  'tags',
  'session_id',
  'user_id',
  'sampled',
  'model',
  'source_format',
  'department',
  'realm',
  'verdict',
  'score',
  'duration_ms',
  'cost_usd',
  'tokens',
] as const;
export type FacetField = (typeof FIELDS)[number];

/** Fields without `fields`: all but ids, which have as many values as traces. */
const DEFAULT_FIELDS = FIELDS.filter((field) => field !== 'session_id' && field !== 'user_id');

export const facetsQuery = z.object({
  ...filterParams,
  fields: listParam(z.enum(FIELDS))
    .transform((fields) => [...new Set(fields)])
    .default(DEFAULT_FIELDS)
    .describe('Fields to count. Without it all but session_id and user_id'),
});
export type FacetsQuery = z.output<typeof facetsQuery>;

export const facet = z
  .object({
    field: z.enum(FIELDS),
    values: z
      .array(
        z.object({
          value: z.string().describe('As the filter takes it. A value of score is a condition, such as stars:eq:4'),
          traces: z.int(),
          judge_id: z.string().optional().describe('Of verdict'),
          name: z.string().optional().describe('Of verdict the name of the judge, of score the name of the score'),
        }),
      )
      .optional()
      .describe('The 50 commonest values. Left out for numbers'),
    buckets: z
      .array(
        z.object({
          from: z.number(),
          to: z.number().nullable().describe('Not included in the range. null for the last range'),
          traces: z.int(),
        }),
      )
      .optional()
      .describe('Ranges of a number that have traces. Only for duration_ms, cost_usd and tokens'),
    without: z.int().optional().describe('Traces without a value. Left out for fields of spans and scores'),
    other: z.int().optional().describe('Traces with another value than the 50. Left out if a trace may have several'),
    approximate: z.boolean().describe('Whether the counts are estimated from a part of the traces'),
    partial: z.boolean().describe('Whether time or memory ran out before the field was counted'),
  })
  .meta({ id: 'TraceFacet' });
export type Facet = z.infer<typeof facet>;

export const facetsMeta = z.object({
  total: z
    .int()
    .nullable()
    .describe('Traces that match all filters; null if time or memory ran out before they were counted'),
  partial: z.boolean().describe('Whether time or memory ran out before a field or the total was counted'),
});
