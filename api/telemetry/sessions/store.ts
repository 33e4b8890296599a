// The reads of sessions and end users from ClickHouse.
import { z } from 'zod';
import { scoreSource } from '../../http/trace_items.ts';
import { outcome } from '../../../schemas/formats/fields.ts';
import { defineQuery } from '../../../sql/client/query.ts';

const whole = z.coerce.number().pipe(z.int());
const flag = z.literal(true).optional();

/**
 * Exactly one of by_session and by_user is set, and exactly one of filtered and unfiltered:
 * filtered if any other filter is set. Times are milliseconds since the epoch.
 */
const filters = {
  org_id: z.string(),
  by_session: flag,
  by_user: flag,
  filtered: flag,
  unfiltered: flag,
  session_id: z.string().optional(),
  user_id: z.string().optional(),
  agent_id: z.string().optional(),
  since_ms: z.int().optional(),
  until_ms: z.int().optional(),
};
export type GroupFilters = z.input<z.ZodObject<typeof filters>>;

const group = z.object({
  id: z.string(),
  traces: whole,
  spans: whole,
  failed_traces: whole,
  input_tokens: whole,
  output_tokens: whole,
  /** Decimal text, in USD. */
  cost: z.string(),
  first_ms: whole,
  last_ms: whole,
});
/** Totals of the traces of one session or end user. */
export type Group = z.output<typeof group>;

export const readGroups = defineQuery({
  name: 'sessions',
  file: 'sessions/page.sql',
  params: z.object({
    ...filters,
    rows: z.int(),
    skip: z.int(),
    from_last_ms: z.int().optional(),
    from_id: z.string().optional(),
  }),
  row: group,
});
/** Returns one row. */
export const readGroupTotal = defineQuery({
  name: 'sessions_total',
  file: 'sessions/total.sql',
  params: z.object(filters),
  row: z.object({ total: whole }),
});

const uint64 = z.string().transform(BigInt);
/** The traces of one session or of one end user: exactly one of the two ids is set. */
const subject = { org_id: z.string(), session_id: z.string().optional(), user_id: z.string().optional() };
export type Subject = z.input<z.ZodObject<typeof subject>>;

const turn = z.object({
  trace_id: z.string(),
  key: z.string(),
  started_ms: whole,
  ended_ms: whole,
  root_name: z.string(),
  agent: z.string(),
  session: z.string(),
  user: z.string(),
  result: outcome,
  span_count: whole,
  tokens_in: whole,
  tokens_out: whole,
  usd: z.number(),
});
export type TurnRow = z.output<typeof turn>;

/** Oldest first. */
export const readTurns = defineQuery({
  name: 'session_turns',
  file: 'sessions/turns.sql',
  params: z.object({
    ...subject,
    rows: z.int(),
    skip: z.int(),
    from_ms: z.int().optional(),
    from_key: z.string().optional(),
  }),
  row: turn,
});

/** Days are numbers since 1970-01-01 (UTC), from `from` up to but not including `until`. */
export const readUserDays = defineQuery({
  name: 'user_days',
  file: 'sessions/days.sql',
  params: z.object({ ...subject, from: z.int(), until: z.int() }),
  row: z.object({
    on_day: z.int(),
    traces: whole,
    failed_traces: whole,
    sessions: whole,
    input_tokens: whole,
    output_tokens: whole,
    /** Decimal text, in USD. */
    cost: z.string(),
  }),
});

/** Returns one row. */
export const readSessionCount = defineQuery({
  name: 'user_sessions',
  file: 'sessions/session_count.sql',
  params: z.object(subject),
  row: z.object({ sessions: whole }),
});

/** Traces of a page, and the range of times in which they ran. */
const stretch = { org_id: z.string(), trace_keys: z.array(uint64), from_ms: z.int(), to_ms: z.int() };

/** Start of a span, milliseconds since the epoch, and its position in the log. */
const place = [whole, whole, whole, whole] as const;
export const readTurnSpans = defineQuery({
  name: 'turn_spans',
  file: 'sessions/turn_spans.sql',
  params: z.object({ ...stretch, spans_max: z.int() }),
  row: z.object({
    trace_id: z.string(),
    asked: z.array(z.tuple([z.unknown(), z.unknown(), ...place])),
    answered: z.array(z.tuple([z.unknown(), z.unknown(), z.unknown(), ...place])),
  }),
});

export const readTurnTexts = defineQuery({
  name: 'turn_texts',
  file: 'sessions/turn_texts.sql',
  params: z.object({
    org_id: z.string(),
    chars_max: z.int(),
    asked_times: z.array(z.string()),
    asked_seqs: z.array(uint64),
    asked_indexes: z.array(z.int()),
    asked_subs: z.array(z.int()),
    answered_times: z.array(z.string()),
    answered_seqs: z.array(uint64),
    answered_indexes: z.array(z.int()),
    answered_subs: z.array(z.int()),
  }),
  row: z.object({
    part: z.enum(['asked', 'answered']),
    log_seq: whole,
    log_index: whole,
    log_sub: whole,
    text: z.string(),
  }),
});

const score = z.object({
  trace_id: z.string(),
  source: scoreSource,
  name: z.string(),
  data_type: z.enum(['numeric', 'boolean', 'categorical']),
  number: z.number().nullable(),
  text: z.string(),
  verdict: z.string(),
});
export type TurnScoreRow = z.output<typeof score>;

export const readTurnScores = defineQuery({
  name: 'turn_scores',
  file: 'sessions/turn_scores.sql',
  params: z.object({ ...stretch, scores_max: z.int() }),
  row: score,
});
