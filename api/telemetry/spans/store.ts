// The span search's reads of ClickHouse: each query of sql/queries/spans with the shapes of its
// parameters and rows.
import { z } from 'zod';
import { defineQuery } from '../../../sql/client/query.ts';

/** Int64 and UInt64 arrive as text; these values stay below 2^53. */
const count = z.coerce.number().pipe(z.int());

const time = { org_id: z.string(), since_ms: z.int().optional(), until_ms: z.int().optional() };
const flag = z.literal(true).optional();
const word = z.object({ word: z.string() });
const weighted = word.extend({ hash: z.int(), weight: z.number() });

const dayCounts = z.object({ day_ms: count, documents: count, words: count });
export type DayCounts = z.output<typeof dayCounts>;

export const readDays = defineQuery({
  name: 'search_days',
  file: 'spans/search_days.sql',
  params: z.object({
    ...time,
    since_day: z.string().optional(),
    until_day: z.string().optional(),
    /** Day of until_ms, unless it is the day of since_ms too. */
    last_day: z.string().optional(),
  }),
  row: dayCounts,
});

export const readWords = defineQuery({
  name: 'search_words',
  file: 'spans/search_words.sql',
  params: z.object({ ...time, words: z.array(word) }),
  row: z.object({ df: z.array(count), any: count }),
});

export const readWaiting = defineQuery({
  name: 'search_waiting',
  file: 'spans/search_waiting.sql',
  params: z.object(time),
  row: z.object({ waiting: count }),
});

const candidates = {
  ...time,
  model: z.string().optional(),
  outcome: z.string().optional(),
  min_cost_usd: z.number().optional(),
  max_cost_usd: z.number().optional(),
  /** Set together with agent_id or tags. */
  of_traces: flag,
  agent_id: z.string().optional(),
  tags: z.array(z.string()).optional(),
  must: z.array(word),
  phrases: z.array(z.object({ words: z.array(z.string()), phrase: z.string() })).optional(),
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

/** Position of a span in the ingest log. */
const place = { log_seq: z.string(), log_index: z.int(), log_sub: z.int() };
const scored = z.object({
  span_id: z.string(),
  trace_id: z.string(),
  model: z.string(),
  started_ms: count,
  ...place,
  score: z.number(),
});
/** Columns that the rows of both kinds of searches have. */
export type ScoredRow = z.output<typeof scored>;

const scoreParams = {
  ...candidates,
  plain: z.array(weighted),
  stops: z.array(weighted),
  also: z.array(word),
  avgdl: z.number(),
  rows: z.int(),
};
const scoreShape = z.object(scoreParams);
export type ScoreParams = z.input<typeof scoreShape>;

export const readScores = defineQuery({
  name: 'search_scores',
  file: 'spans/search_scores.sql',
  params: scoreShape,
  row: scored.extend({ prompt: z.string(), response: z.string() }),
});
export type TextRow = Awaited<ReturnType<typeof readScores>>[number];

export const readSnippets = defineQuery({
  name: 'search_snippets',
  file: 'spans/search_snippets.sql',
  params: z.object({
    ...scoreParams,
    /** Set where the columns of the snippets are needed. */
    finds: z.literal(true),
    /** Bytes up to which texts are whole, and characters of a text that is not. */
    bytes: z.int(),
    chars: z.int(),
  }),
  row: z.object({
    ...scored.shape,
    outcome: z.enum(['success', 'error', 'timeout']),
    cost_usd: z.number(),
    started_at: z.string(),
    prompt: z.string(),
    response: z.string(),
    plain_parts: z.array(z.number()),
    stop_parts: z.array(z.number()),
  }),
});
export type SnippetRow = Awaited<ReturnType<typeof readSnippets>>[number];

/** A UInt64 inside an array is sent as a bare number. */
const uint64 = z.string().transform(BigInt);

export const readPlaces = defineQuery({
  name: 'search_places',
  file: 'spans/search_places.sql',
  params: z.object({
    org_id: z.string(),
    times: z.array(z.string()),
    trace_ids: z.array(z.string()),
    seqs: z.array(uint64),
    indexes: z.array(z.int()),
    subs: z.array(z.int()),
  }),
  row: z.object({ ...place, trace_id: z.string(), name: z.string(), agent_id: z.string() }),
});
