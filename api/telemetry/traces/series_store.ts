// The reads of series from ClickHouse.
import { z } from 'zod';
import { defineQuery } from '../../../sql/client/query.ts';
import { filterShape } from './filters.ts';

const count = z.coerce.number().pipe(z.int());
const flag = z.literal(true).optional();

/** Filters with their time bounded, and one of the flags. */
const grouped = {
  ...filterShape,
  since_ms: z.int(),
  until_ms: z.int(),
  by_none: flag,
  by_outcome: flag,
  by_agent_id: flag,
  by_root_span_name: flag,
  by_session_id: flag,
  by_user_id: flag,
  by_model: flag,
  /** Set if a filter other than the time is. */
  filtered: flag,
};
/** With `named`, rows of values beyond `top` are left out. */
const bucketed = z.object({ ...grouped, step_ms: z.int(), top: z.array(z.string()), named: flag });
const point = z.object({
  bucket: count,
  grp: z.string(),
  other: z.coerce.boolean(),
  traces: count,
  errors: count,
  timeouts: count,
  cost_usd: z.number(),
  input_tokens: count,
  output_tokens: count,
  quantiles: z.array(z.number().nullable()),
});
export type Point = z.output<typeof point>;

export const readSeries = defineQuery({
  name: 'trace_series',
  file: 'traces/series.sql',
  params: bucketed,
  row: point,
});
export const readCallSeries = defineQuery({
  name: 'trace_series_calls',
  file: 'traces/series_calls.sql',
  params: bucketed,
  row: point,
});
export const readFirstTokens = defineQuery({
  name: 'trace_series_first_tokens',
  file: 'traces/series_first_tokens.sql',
  params: bucketed,
  row: z.object({ bucket: count, quantiles: z.array(z.number().nullable()) }),
});

const top = { params: z.object({ ...grouped, rows: z.int() }), row: z.object({ value: z.string() }) };
export const readTop = defineQuery({ name: 'trace_series_top', file: 'traces/series_top.sql', ...top });
export const readTopModels = defineQuery({
  name: 'trace_series_top_models',
  file: 'traces/series_top_models.sql',
  ...top,
});
