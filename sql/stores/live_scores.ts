// Reads of the scores that judges gave live traces, for the API. Every read is by organization and
// bounded by the time of the scores; times are milliseconds since the epoch.
import { z } from 'zod';
import { defineQuery } from '../client/query.ts';

/** UInt64 and Int64 arrive as text; these stay below 2^53. */
const whole = z.coerce.number().pipe(z.int());
const verdict = z.enum(['pass', 'warn', 'fail', 'error']);

const ofJudge = {
  org_id: z.string(),
  judge_id: z.string(),
  since_ms: z.int(),
  verdicts: z.array(verdict).optional(),
  judge_version: z.int().optional(),
};
const counts = {
  total: whole,
  passed: whole,
  warned: whole,
  failed: whole,
  errors: whole,
  mean_score: z.number().nullable(),
};

/** Live scores of a judge, newest first. `after` is the last score of the page before. */
export const readLiveScores = defineQuery({
  name: 'live_scores',
  file: 'live_scores/page.sql',
  params: z.object({
    ...ofJudge,
    after_ms: z.int().optional(),
    after_trace: z.string().optional(),
    after_version: z.int().optional(),
    rows: z.int(),
    skip: z.int(),
  }),
  row: z.object({
    trace_id: z.string(),
    agent_id: z.string(),
    judge_version: z.int(),
    score: z.number().nullable(),
    verdict,
    reason: z.string(),
    scored_ms: whole,
  }),
});

export const countLiveScores = defineQuery({
  name: 'live_score_count',
  file: 'live_scores/count.sql',
  params: z.object(ofJudge),
  row: z.object({ total: whole }),
});

export const readLiveDays = defineQuery({
  name: 'live_score_days',
  file: 'live_scores/days.sql',
  params: z.object(ofJudge),
  row: z.object({ day: z.string(), judge_version: z.int(), ...counts }),
});

export const readLiveJudges = defineQuery({
  name: 'live_score_judges',
  file: 'live_scores/judges.sql',
  params: z.object({ org_id: z.string(), since_ms: z.int() }),
  row: z.object({ judge_id: z.string(), ...counts, last_breach_ms: whole.nullable() }),
});
