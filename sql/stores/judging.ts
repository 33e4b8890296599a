// Reads of stored traces for judges, and of the scores that judges gave live traces. Times are
// milliseconds since the epoch.
import { z } from 'zod';
import { defineQuery } from '../client/query.ts';

/** Int64 and UInt64 arrive as text; these stay below 2^53. */
const whole = z.coerce.number().pipe(z.int());
/** UInt64 within an array is sent as a bare number. */
const uint64 = z.string().transform(BigInt);

/** Traces of an organization within a time range. */
const stretch = z.object({
  org_id: z.string(),
  trace_ids: z.array(z.string()),
  trace_keys: z.array(uint64),
  from_ms: z.int(),
  to_ms: z.int(),
});

export const readJudgedBounds = defineQuery({
  name: 'judging_bounds',
  file: 'judging/bounds.sql',
  params: z.object({ org_id: z.string(), trace_ids: z.array(z.string()) }),
  row: z.object({ trace_key: z.string(), from_ms: whole, to_ms: whole }),
});

const head = z.object({
  trace_id: z.string(),
  has_root: z.coerce.boolean(),
  head_name: z.string(),
  head_format: z.string(),
  head_agent: z.string(),
  head_attributes: z.string(),
  head_at: z.string(),
  head_seq: z.string(),
  head_index: z.int(),
  head_sub: z.int(),
  first_agent: z.string(),
  errors: whole,
  timeouts: whole,
  started_ms: whole,
  ended_ms: whole,
  input_tokens: whole,
  output_tokens: whole,
  cost_usd: z.number(),
  tags: z.array(z.string()),
});
export type JudgedHead = z.output<typeof head>;

export const readJudgedHeads = defineQuery({
  name: 'judging_traces',
  file: 'judging/traces.sql',
  params: stretch,
  row: head,
});

const source = z.object({
  trace_id: z.string(),
  prompt_at: z.string(),
  prompt_seq: z.string(),
  prompt_index: z.int(),
  prompt_sub: z.int(),
  prompt_length: whole,
  response_at: z.string(),
  response_seq: z.string(),
  response_index: z.int(),
  response_sub: z.int(),
  response_length: whole,
  model: z.string(),
  /** Whether the root or a model call has a prompt, and a response. */
  call_asked: z.coerce.boolean(),
  call_answered: z.coerce.boolean(),
});
export type JudgedSource = z.output<typeof source>;

export const readJudgedSources = defineQuery({
  name: 'judging_sources',
  file: 'judging/sources.sql',
  params: stretch,
  row: source,
});

export const readJudgedTexts = defineQuery({
  name: 'judging_texts',
  file: 'judging/texts.sql',
  params: z.object({
    org_id: z.string(),
    times: z.array(z.string()),
    seqs: z.array(uint64),
    indexes: z.array(z.int()),
    subs: z.array(z.int()),
  }),
  row: z.object({
    trace_id: z.string(),
    log_seq: z.string(),
    log_index: z.int(),
    log_sub: z.int(),
    prompt: z.string(),
    response: z.string(),
  }),
});

/** Score that a version of a judge gave a live trace; no row if it has given none. */
export const readLiveScore = defineQuery({
  name: 'judging_live_score',
  file: 'judging/live_score.sql',
  params: z.object({ org_id: z.string(), judge_id: z.string(), trace_id: z.string(), judge_version: z.int() }),
  row: z.object({ score: z.number().nullable() }),
});
