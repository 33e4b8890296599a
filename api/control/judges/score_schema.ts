// Request and response shapes of what judges said of live traffic, and of their versions.
import { z } from 'zod';
import { cursorQuery } from '../../http/list_pages.ts';
import { decodeCursor, encodeCursor } from '../../http/pagination.ts';

const VERDICTS = ['pass', 'warn', 'fail', 'error'] as const;
const DAYS_MAX = 90;
const DAYS_DEFAULT = 7;
const VERSION_MAX = 2 ** 31;

const digits = (max: number) => {
  const error = `must be an integer between 1 and ${max}`;
  return z
    .string()
    .regex(/^\d{1,10}$/, { error })
    .transform(Number)
    .pipe(z.int().min(1, { error }).max(max, { error }));
};

const days = digits(DAYS_MAX).default(DAYS_DEFAULT).meta({
  type: 'integer',
  minimum: 1,
  maximum: DAYS_MAX,
  default: DAYS_DEFAULT,
  description: 'Number of days in UTC, up to and including today, by the time of the score',
});

export const liveScoresQuery = z
  .object({
    ...cursorQuery(),
    days,
    verdict: z
      .union([z.string(), z.array(z.string())])
      .transform((given) => [given].flat().flatMap((text) => text.split(',')))
      .pipe(z.array(z.enum(VERDICTS)).min(1))
      .optional()
      .meta({ description: 'Scores with these verdicts only. Repeated or comma-separated' }),
    version: digits(VERSION_MAX)
      .optional()
      .meta({ type: 'integer', minimum: 1, description: 'Scores by this version of the judge only' }),
  })
  .strip();
export type LiveScoresQuery = z.output<typeof liveScoresQuery>;

export const statsQuery = z.object({ days }).strip();

export const liveScore = z
  .object({
    trace_id: z.string(),
    agent_id: z.string().describe('Empty for a trace without an agent'),
    judge_version: z.int(),
    score: z.number().nullable().describe('null if the verdict is error'),
    verdict: z.enum(VERDICTS),
    reason: z.string(),
    scored_at: z.iso.datetime(),
  })
  .meta({ id: 'LiveScore' });
export type LiveScore = z.infer<typeof liveScore>;

const counts = {
  total: z.int().describe('Judgements'),
  passed: z.int(),
  warned: z.int(),
  failed: z.int(),
  errors: z.int().describe('Judgements without a score; they count in neither pass_rate nor mean_score'),
  pass_rate: z.number().nullable().describe('Share of the scored judgements with the verdict pass; null without any'),
  mean_score: z.number().nullable(),
};

export const judgeStats = z
  .object({
    judge_id: z.string(),
    days: z.int(),
    ...counts,
    by_day: z
      .array(z.object({ day: z.iso.date(), judge_version: z.int(), ...counts }))
      .describe('By day in UTC and version, oldest day first; days without a judgement are left out'),
  })
  .meta({ id: 'JudgeStats' });
export type JudgeStats = z.infer<typeof judgeStats>;

export const judgeSummary = z
  .object({
    judge_id: z.string(),
    ...counts,
    last_breach_at: z.iso
      .datetime()
      .nullable()
      .describe('Time of the newest score below threshold.warn, or below threshold.pass where no warn is set'),
  })
  .meta({ id: 'JudgeSummary' });
export type JudgeSummary = z.infer<typeof judgeSummary>;

/** Score after which a page begins. */
export interface ScorePlace {
  scored_ms: number;
  trace_id: string;
  judge_version: number;
  /** Number of scores before the page. */
  before: number;
}

const placeTuple = z.tuple([z.int(), z.string().max(200), z.int().min(1), z.int().min(0)]);

export function scoreCursorOf({ scored_ms, trace_id, judge_version, before }: ScorePlace): string {
  return encodeCursor([scored_ms, trace_id, judge_version, before]);
}

/** @throws ApiError invalid_request for a cursor that this list did not return */
export function scorePlaceOf(cursor: string): ScorePlace {
  const [scored_ms, trace_id, judge_version, before] = decodeCursor(cursor, placeTuple);
  return { scored_ms, trace_id, judge_version, before };
}
