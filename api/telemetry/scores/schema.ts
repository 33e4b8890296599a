// Request and response shapes of scores.
import { z } from 'zod';
import { offsetQuery } from '../../http/pagination.ts';
import { scoreValue } from '../../http/trace_items.ts';

const COMMENT_CHARS_MAX = 10_000;

const traceId = z
  .string()
  .regex(/^(?!\.{1,2}$)[A-Za-z0-9_.:-]{1,128}$/, { error: 'must be a trace id: 1 to 128 of letters, digits, _ . : -' });

export const scoreBody = z.strictObject({
  trace_id: traceId,
  span_id: z.string().min(1).max(128).nullish().describe('Span to score. Without it, the score is of the whole trace'),
  name: z.string().trim().min(1).max(200).describe('What is scored, such as helpful or stars'),
  value: scoreValue,
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
