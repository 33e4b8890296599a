// The span search's reads of ClickHouse: each query of sql/queries/spans with the shapes of its
// parameters and rows.
import { z } from 'zod';
import { defineQuery } from '../../../sql/client/query.ts';

/** Int64 and UInt64 arrive as text; these values stay below 2^53. */
const count = z.coerce.number().pipe(z.int());

const time = { org_id: z.string(), since_ms: z.int().optional() };
const word = z.object({ word: z.string() });
const weighted = word.extend({ hash: z.int(), weight: z.number() });

const dayCounts = z.object({ day_ms: count, documents: count, words: count });
export type DayCounts = z.output<typeof dayCounts>;

export const readDays = defineQuery({
  name: 'search_days',
  file: 'spans/search_days.sql',
  params: z.object({ ...time, since_day: z.string().optional() }),
  row: dayCounts,
});

export const readWords = defineQuery({
  name: 'search_words',
  file: 'spans/search_words.sql',
  params: z.object({ ...time, words: z.array(word) }),
  row: z.object({ df: z.array(count), any: count }),
});

const candidates = {
  ...time,
  model: z.string().optional(),
  outcome: z.string().optional(),
  min_cost_usd: z.number().optional(),
  max_cost_usd: z.number().optional(),
  must: z.array(word),
};
const candidateParams = z.object(candidates);
/** Documents that a search scores. */
export type Candidates = z.input<typeof candidateParams>;

export const readCount = defineQuery({
  name: 'search_count',
  file: 'spans/search_count.sql',
  params: candidateParams,
  row: z.object({ candidates: count }),
});

const scoredRow = z.object({
  span_id: z.string(),
  trace_id: z.string(),
  prompt: z.string(),
  response: z.string(),
  model: z.string(),
  started_ms: count,
  log_seq: z.string(),
  log_index: z.int(),
  log_sub: z.int(),
  score: z.number(),
});
export type ScoredRow = z.output<typeof scoredRow>;

export const readScores = defineQuery({
  name: 'search_scores',
  file: 'spans/search_scores.sql',
  params: z.object({
    ...candidates,
    plain: z.array(weighted),
    stops: z.array(weighted),
    also: z.array(word),
    avgdl: z.number(),
    rows: z.int(),
  }),
  row: scoredRow,
});
