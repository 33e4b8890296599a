// The reads of scores from ClickHouse.
import { z } from 'zod';
import { defineQuery } from '../../../sql/client/query.ts';

const whole = z.coerce.number().pipe(z.int());
const flag = z.literal(true).optional();
const trace = { org_id: z.string(), trace_id: z.string() };

/** Scores of users and judges, or of one of them. */
export const readScores = defineQuery({
  name: 'trace_scores',
  file: 'user_scores/of_trace.sql',
  params: z.object({ ...trace, user_only: flag, judge_only: flag, rows: z.int(), skip: z.int() }),
  row: z.object({
    source: z.enum(['user', 'judge']),
    score_id: z.string(),
    span_id: z.string(),
    name: z.string(),
    data_type: z.enum(['numeric', 'boolean', 'categorical']),
    number: z.number().nullable(),
    text: z.string(),
    comment: z.string(),
    author_type: z.enum(['user', 'api_key', 'judge']),
    author_id: z.string(),
    judge_id: z.string(),
    judge_version: z.int(),
    eval_id: z.string(),
    verdict: z.string(),
    created_ms: whole,
  }),
});

export type ScoreRow = Awaited<ReturnType<typeof readScores>>[number];

/** Returns one row. */
export const readScoreTotals = defineQuery({
  name: 'trace_scores_total',
  file: 'user_scores/total.sql',
  params: z.object(trace),
  row: z.object({ of_users: whole, of_judges: whole }),
});

/** Returns a row if the trace has the span; the time range is that of the trace. */
export const readSpan = defineQuery({
  name: 'scored_span',
  file: 'user_scores/span.sql',
  params: z.object({ ...trace, span_id: z.string(), from_ms: z.int(), to_ms: z.int() }),
  row: z.object({ found: z.int() }),
});
