// The reads of facets from ClickHouse.
import { z } from 'zod';
import { defineQuery } from '../../../sql/client/query.ts';
import { filterShape } from './filters.ts';

const count = z.coerce.number().pipe(z.int());
const flag = z.literal(true).optional();
const rows = z.int();

const text = z.string().nullable().optional();
const number = z.number().nullable().optional();

/** Times whose traces are counted, see counted_part.sql; all traces are if it is left out. */
const slices = z.array(z.object({ from_ms: z.int(), to_ms: z.int() })).optional();

/** Counts traces by period of `period_ms` of the time in the key, the earliest first. */
export const readPeriods = defineQuery({
  name: 'trace_facet_periods',
  file: 'traces/periods.sql',
  params: z.object({ ...filterShape, period_ms: z.int() }),
  row: z.object({ period: count, traces: count }),
});

/** Counts the traces that facets are counted in. */
export const readCounted = defineQuery({
  name: 'trace_facet_counted',
  file: 'traces/total.sql',
  params: z.object({ ...filterShape, slices }),
  row: z.object({ total: count }),
});

/** Counts fields of traces whose values are few; the flags say which. */
export const readSums = defineQuery({
  name: 'trace_facet_sums',
  file: 'traces/facet_sums.sql',
  params: z.object({
    ...filterShape,
    by_outcome: flag,
    by_agent_id: flag,
    by_root_span_name: flag,
    by_sampled: flag,
    by_duration_ms: flag,
    by_cost_usd: flag,
    by_tokens: flag,
    /** Set to count the traces without tags in the row of the total. */
    by_untagged: flag,
    whole_edges: z.array(z.number()),
    cost_edges: z.array(z.number()),
    slices,
    rows,
  }),
  row: z.object({
    traces: count,
    untagged: count.optional(),
    outcome: text,
    agent_id: text,
    root_span_name: text,
    kept: text,
    duration_from: number,
    cost_from: number,
    tokens_from: number,
  }),
});

/** Counts one field of traces; exactly one flag is set. */
export const readFacetValues = defineQuery({
  name: 'trace_facet_values',
  file: 'traces/facet_values.sql',
  params: z.object({ ...filterShape, by_session_id: flag, by_user_id: flag, by_tags: flag, slices, rows }),
  row: z.object({ value: z.string(), traces: count, total: count }),
});

export const readUntagged = defineQuery({
  name: 'trace_facet_untagged',
  file: 'traces/facet_untagged.sql',
  params: z.object({ ...filterShape, slices }),
  row: z.object({ traces: count }),
});

const ofSpans = { by_model: flag, by_source_format: flag, by_department: flag, by_realm: flag };

/** Counts fields of the spans of described traces; the flags say which. */
export const readDescribedValues = defineQuery({
  name: 'trace_facet_described',
  file: 'traces/facet_described.sql',
  params: z.object({ ...filterShape, ...ofSpans, slices, rows }),
  row: z.object({ field: z.string(), value: z.string(), traces: count }),
});

/** The same in one pass, for filters that leave few traces. */
export const readDescribedAtOnce = defineQuery({
  name: 'trace_facet_described_at_once',
  file: 'traces/facet_described_at_once.sql',
  params: z.object({ ...filterShape, ...ofSpans, rows }),
  row: z.object({ field: z.string(), value: z.string(), traces: count }),
});

/** Counts the traces that only their spans describe. */
export const readUndescribed = defineQuery({
  name: 'trace_facet_undescribed',
  file: 'traces/facet_undescribed.sql',
  params: z.object(filterShape),
  row: z.object({ traces: count }),
});

/** Counts fields of the spans of the other traces; the flags say which. */
export const readSpanValues = defineQuery({
  name: 'trace_facet_spans',
  file: 'traces/facet_spans.sql',
  params: z.object({
    ...filterShape,
    ...ofSpans,
    share: z.int(),
    rows,
  }),
  row: z.object({ traces: count, model: text, source_format: text, department: text, realm: text }),
});

export const readVerdicts = defineQuery({
  name: 'trace_facet_verdicts',
  file: 'traces/facet_verdicts.sql',
  params: z.object({ ...filterShape, rows }),
  row: z.object({ judge_id: z.string(), name: z.string(), value: z.string(), traces: count }),
});

export const readScoreValues = defineQuery({
  name: 'trace_facet_scores',
  file: 'traces/facet_scores.sql',
  params: z.object({ ...filterShape, rows }),
  row: z.object({ name: z.string(), value: z.string(), traces: count }),
});
