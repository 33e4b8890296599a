// Reads of complete traces that a worker judges and does not hold in memory: their spans, texts and
// attributes, and the scores that rules have given them. Every read is about a few traces, of any
// partitions. Times are milliseconds since the epoch.
import { z } from 'zod';
import { defineQuery } from '../client/query.ts';

const READ_TIMEOUT_MS = 60_000;

/**
 * `orgs` and `traces` are not pairs: a row may match an organization and a trace that were not
 * asked for together.
 */
const traces = { partitions: z.array(z.int()), orgs: z.array(z.string()), traces: z.array(z.string()) };
const within = { ...traces, from: z.int(), until: z.int() };
/** `places` is the text of an Array(Tuple(UInt64, UInt32, UInt32)) of log positions. */
const places = z.object({ ...within, places: z.string() });

const place = {
  org_id: z.string(),
  trace_id: z.string(),
  seq: z.coerce.number(),
  log_index: z.int(),
  log_sub: z.int(),
};

export const readLiveSpans = defineQuery({
  name: 'judged_spans',
  file: 'live_judging/spans.sql',
  params: z.object({ ...within, through: z.int() }),
  row: z.object({
    ...place,
    started_ms: z.coerce.number(),
    ended_ms: z.coerce.number(),
    is_root: z.coerce.boolean(),
    kind: z.enum(['llm', 'tool', 'event', 'app']),
    model: z.string(),
    source_format: z.string(),
    parent_span_id: z.string(),
    name: z.string(),
    flags: z.int(),
  }),
  timeoutMs: READ_TIMEOUT_MS,
});

export const readTextSides = defineQuery({
  name: 'judged_texts',
  file: 'live_judging/text_sides.sql',
  params: z.object({ ...within, through: z.int() }),
  row: z.object({ ...place, has_prompt: z.coerce.boolean(), has_response: z.coerce.boolean() }),
  timeoutMs: READ_TIMEOUT_MS,
});

export const readLiveTexts = defineQuery({
  name: 'judged_texts',
  file: 'live_judging/texts.sql',
  params: places,
  row: z.object({ ...place, prompt: z.string(), response: z.string() }),
  timeoutMs: READ_TIMEOUT_MS,
});

export const readLiveAttributes = defineQuery({
  name: 'judged_attributes',
  file: 'live_judging/attributes.sql',
  params: places,
  row: z.object({ ...place, attributes: z.string() }),
  timeoutMs: READ_TIMEOUT_MS,
});

export const readRuleScores = defineQuery({
  name: 'judged_already',
  file: 'live_judging/rule_scores.sql',
  params: z.object(traces),
  row: z.object({
    org_id: z.string(),
    trace_id: z.string(),
    judge_id: z.string(),
    judge_version: z.int(),
    judge_name: z.string(),
    score: z.number().nullable(),
    verdict: z.enum(['pass', 'warn', 'fail', 'error']),
    reason: z.string(),
  }),
  timeoutMs: READ_TIMEOUT_MS,
});
