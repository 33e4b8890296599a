// The reads of scores from ClickHouse.
import { z } from 'zod';
import { scoreSource } from '../../http/trace_items.ts';
import { defineQuery } from '../../../sql/client/query.ts';

const whole = z.coerce.number().pipe(z.int());
const flag = z.literal(true).optional();
const trace = { org_id: z.string(), trace_id: z.string() };

const scoreRow = z.object({
  source: scoreSource,
  score_id: z.string(),
  span_id: z.string(),
  name: z.string(),
  data_type: z.enum(['numeric', 'boolean', 'categorical']),
  number: z.number().nullable(),
  text: z.string(),
  comment: z.string(),
  author_type: z.enum(['user', 'api_key', 'judge', 'otel']),
  author_id: z.string(),
  judge_id: z.string(),
  judge_version: z.int(),
  eval_id: z.string(),
  verdict: z.string(),
  created_ms: whole,
});
export type ScoreRow = z.output<typeof scoreRow>;

/** Scores of users and judges of one trace, newest first. */
export const readScores = defineQuery({
  name: 'trace_scores',
  file: 'user_scores/of_trace.sql',
  params: z.object({ ...trace, rows: z.int() }),
  row: scoreRow,
});

/** Returns a row if the trace has the span; the time range is that of the trace. */
export const readSpan = defineQuery({
  name: 'scored_span',
  file: 'user_scores/span.sql',
  params: z.object({ ...trace, span_id: z.string(), from_ms: z.int(), to_ms: z.int() }),
  row: z.object({ found: z.int() }),
});

const across = {
  org_id: z.string(),
  since_ms: z.int(),
  until_ms: z.int(),
  names: z.array(z.string()).optional(),
  trace_ids: z.array(z.string()).optional(),
  user: z.string().optional(),
  user_only: flag,
  judge_only: flag,
  otel_only: flag,
};

/** Scores across traces, newest first. */
export const readScoresAcross = defineQuery({
  name: 'scores_across',
  file: 'user_scores/of_org.sql',
  params: z.object({
    ...across,
    after_ms: z.int().optional(),
    after_place: z.string().optional(),
    rows: z.int(),
    skip: z.int(),
  }),
  row: scoreRow.extend({ trace_id: z.string(), place: z.coerce.string() }),
});

/** Returns one row. */
export const readTotalAcross = defineQuery({
  name: 'scores_across_total',
  file: 'user_scores/total_of_org.sql',
  params: z.object(across),
  row: z.object({ total: whole }),
});
export type AcrossParams = z.input<z.ZodObject<typeof across>>;

/** Returns the score and its deletion, whose name is empty and comes first. */
export const readScore = defineQuery({
  name: 'user_score',
  file: 'user_scores/one.sql',
  params: z.object({ org_id: z.string(), score_id: z.string() }),
  row: z.object({
    trace_id: z.string(),
    span_id: z.string(),
    name: z.string(),
    author_type: z.enum(['user', 'api_key', 'otel']),
    author_id: z.string(),
    started_ms: whole,
    created_ms: whole,
  }),
});
