// Request and response shapes of scores.
import { z } from 'zod';
import { cursorMeta, cursorQuery } from '../../http/list_pages.ts';
import { decodeCursor, encodeCursor } from '../../http/pagination.ts';
import { listParam } from '../../http/route.ts';
import { timeParam } from '../../http/time_param.ts';
import { scoreItem, scoreValue } from '../../http/trace_items.ts';

const COMMENT_CHARS_MAX = 10_000;
/** Maximum names, and maximum trace ids, of one list. */
const VALUES_MAX = 200;
const NAME_CHARS_MAX = 200;
const AUTHOR_CHARS_MAX = 200;

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

export const givenScore = scoreItem
  .extend({
    pending: z
      .literal(true)
      .optional()
      .describe('The trace has not arrived. The score is attached when it does, or dropped after 24 hours'),
  })
  .meta({ id: 'GivenScore' });
export type GivenScore = z.infer<typeof givenScore>;

const list = <T extends z.ZodType>(item: T) =>
  listParam(item).refine((values) => values.length <= VALUES_MAX, { error: `must have at most ${VALUES_MAX} values` });

export const scoresQuery = z
  .object({
    trace_id: traceId.optional().describe('Scores of this trace'),
    trace_ids: list(traceId).optional().describe('Scores of these traces, comma-separated'),
    name: list(z.string().max(NAME_CHARS_MAX)).optional().describe('Scores with any of these names, comma-separated'),
    user: z.string().min(1).max(AUTHOR_CHARS_MAX).optional().describe('Scores that this member or API key gave, by id'),
    source: z
      .enum(['user', 'judge', 'otel'])
      .optional()
      .describe(
        'user lists scores of people and applications, judge those of judges, otel evaluation results of OpenTelemetry. Defaults to all',
      ),
    since: timeParam
      .optional()
      .describe('Scores given at or after this time. Without it and without traces, those of the last 30 days'),
    until: timeParam.optional().describe('Scores given at or before this time'),
    ...cursorQuery(),
  })
  .strip()
  .refine(({ trace_id, trace_ids }) => trace_id === undefined || trace_ids === undefined, {
    path: ['trace_ids'],
    error: 'cannot be given together with trace_id',
  });
export type ScoresQuery = z.output<typeof scoresQuery>;

export const scoresMeta = cursorMeta.extend({
  has_more: z.boolean().describe('Whether more items follow'),
});

/** Place of a score in the list: when it was given, and what orders scores of one moment. */
export interface ScorePlace {
  ms: number;
  /** A string, since it exceeds the safe integers. */
  place: string;
  /** Number of scores before the page. */
  before: number;
}

const placeTuple = z.tuple([z.int(), z.string().regex(/^\d{1,20}$/), z.int().min(0)]);

export const cursorOf = ({ ms, place, before }: ScorePlace): string => encodeCursor([ms, place, before]);

/** @throws ApiError invalid_request for a cursor that this list did not return */
export function placeOf(cursor: string): ScorePlace {
  const [ms, place, before] = decodeCursor(cursor, placeTuple);
  return { ms, place, before };
}

export const scoreParams = z.object({
  score_id: z.string().regex(/^score_[0-9a-f]{32}$/, { error: 'must be a score id: score_ and 32 hex digits' }),
});
export const deletedScore = z.object({ score_id: z.string(), deleted: z.literal(true) });
