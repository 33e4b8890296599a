// Request and response shapes of scores.
import { z } from 'zod';
import { offsetQuery } from '../../http/pagination.ts';

const COMMENT_CHARS_MAX = 10_000;
const CATEGORY_CHARS_MAX = 1000;

const traceId = z
  .string()
  .regex(/^(?!\.{1,2}$)[A-Za-z0-9_.:-]{1,128}$/, { error: 'must be a trace id: 1 to 128 of letters, digits, _ . : -' });
const value = z.union([z.number(), z.boolean(), z.string().min(1).max(CATEGORY_CHARS_MAX)], {
  error: `must be a number, true or false, or a category of 1 to ${CATEGORY_CHARS_MAX} characters`,
});

export const scoreBody = z.strictObject({
  trace_id: traceId,
  span_id: z.string().min(1).max(128).nullish().describe('Span to score. Without it, the score is of the whole trace'),
  name: z.string().trim().min(1).max(200).describe('What is scored, such as helpful or stars'),
  value,
  comment: z.string().max(COMMENT_CHARS_MAX).nullish(),
});
export type ScoreBody = z.output<typeof scoreBody>;

export const scoresQuery = z
  .object({
    trace_id: traceId,
    source: z
      .enum(['user', 'judge'])
      .optional()
      .describe('user lists scores of people and applications, judge those of judges. Defaults to both'),
    ...offsetQuery,
  })
  .strip();
export type ScoresQuery = z.output<typeof scoresQuery>;

export const scoreItem = z
  .object({
    score_id: z.string().nullable().describe('null for scores of judges'),
    trace_id: z.string(),
    span_id: z.string().nullable(),
    name: z.string().describe('Name of the score. For judges, the name of the judge'),
    value: value.nullable().describe('null if the judge failed'),
    data_type: z.enum(['numeric', 'boolean', 'categorical']),
    comment: z.string().nullable().describe('For judges, the reason'),
    source: z.enum(['user', 'judge']),
    author: z.object({ type: z.enum(['user', 'api_key', 'judge']), id: z.string() }),
    verdict: z.enum(['pass', 'warn', 'fail', 'error']).nullable().describe('Of judges'),
    judge_version: z.int().nullable(),
    eval_id: z.string().nullable().describe('Eval that created the score. null for live traffic and for users'),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'Score' });
export type ScoreItem = z.infer<typeof scoreItem>;
