// The reads of the calls and scores of a prompt from ClickHouse.
import { z } from 'zod';
import { scoreSource } from '../../http/trace_items.ts';
import { outcome } from '../../../schemas/formats/fields.ts';
import { defineQuery } from '../../../sql/client/query.ts';

const whole = z.coerce.number().pipe(z.int());
const flag = z.coerce.number().transform((value) => value === 1);
const fraction = z.number().nullable();

/** Times are milliseconds since the epoch. */
const calls = { org_id: z.string(), name: z.string(), from_ms: z.int(), to_ms: z.int(), rows: z.int() };

const usageRow = z.object({
  /** True in the row of all versions. */
  is_total: flag,
  /** Empty for calls that name no version. */
  version: z.string(),
  /** Number of versions that were called. */
  versions: whole,
  calls: whole,
  failed: whole,
  tokens_in: whole,
  tokens_out: whole,
  /** Decimal text, in USD. */
  cost: z.string(),
  /** Median and 95th percentile of the duration, milliseconds. */
  quantiles: z.tuple([z.number(), z.number()]),
  first_ms: whole,
  last_ms: whole,
});
export type UsageRow = z.output<typeof usageRow>;

/** The row of all versions comes first; there is none when no call named the prompt. */
export const readUsage = defineQuery({
  name: 'prompt_usage',
  file: 'prompts/usage.sql',
  params: z.object(calls),
  row: usageRow,
});

const scoreRow = z.object({
  is_total: flag,
  version: z.string(),
  source: scoreSource,
  /** Empty for scores of people and applications. */
  judge_id: z.string(),
  /** Name of the score or of the judge. */
  name: z.string(),
  scored: whole,
  mean: fraction,
  passed: whole,
  warned: whole,
  failed: whole,
});
export type ScoreRow = z.output<typeof scoreRow>;

export const readUsageScores = defineQuery({
  name: 'prompt_usage_scores',
  file: 'prompts/usage_scores.sql',
  params: z.object({ ...calls, scores_max: z.int() }),
  row: scoreRow,
});

/** Newest first. */
export const readRecentCalls = defineQuery({
  name: 'prompt_calls',
  file: 'prompts/recent.sql',
  params: z.object({ ...calls, version: z.string().optional(), variable_bytes_max: z.int() }),
  row: z.object({
    trace_id: z.string(),
    span_id: z.string(),
    version: z.string(),
    model: z.string(),
    outcome,
    started_ms: whole,
    duration_ms: whole,
    cost: z.number(),
    /** JSON; empty for none. */
    variables: z.string(),
  }),
});
