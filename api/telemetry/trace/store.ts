// The reads of one trace from ClickHouse: each query of sql/queries/trace with the shapes of its
// parameters and rows.
import { z } from 'zod';
import { SPAN_FLAGS, type SpanFlag } from '../../../pipeline/domain/traces/span_flags.ts';
import { outcome } from '../../../schemas/formats/fields.ts';
import { defineQuery } from '../../../sql/client/query.ts';
import { traceRow } from '../../http/trace_items.ts';

/** Int64 and UInt64 arrive as text; these values stay below 2^53. */
const count = z.coerce.number().pipe(z.int());
const kind = z.enum(['llm', 'tool', 'event', 'app']);

const oneTrace = { org_id: z.string(), trace_id: z.string(), from_ms: z.int(), to_ms: z.int() };
const traceRange = z.object(oneTrace);
/** One trace of one organization, and the range of its spans' starts. */
export type TraceRange = z.input<typeof traceRange>;

/** Position of a span in the ingest log. */
const place = { log_seq: z.string(), log_index: z.int(), log_sub: z.int() };
/** A UInt64 inside an array is sent as a bare number. */
const uint64 = z.string().transform(BigInt);

/** Bits of the flags, as parameters with their values as defaults. */
const FLAG_PARAMS = Object.fromEntries(
  Object.entries(SPAN_FLAGS).map(([name, bit]) => [name, z.int().default(bit)]),
) as Record<SpanFlag, z.ZodDefault<z.ZodInt>>;

/** Columns of an outline are checked by their first element, since they may be long. */
const columnOf = <T>(item: z.ZodType<T>) =>
  z.custom<T[]>((value) => Array.isArray(value) && (value.length === 0 || item.safeParse(value[0]).success));

export const readOutline = defineQuery({
  name: 'trace_outline',
  file: 'trace/outline.sql',
  params: z.object({ ...oneTrace, rows: z.int() }),
  row: z.object({
    total: count,
    received_ms: count,
    /** Spans that landed before flags were recorded. */
    unflagged: count,
    span_id: columnOf(z.string()),
    parent_span_id: columnOf(z.string()),
    name: columnOf(z.string()),
    kind: columnOf(kind),
    model: columnOf(z.string()),
    outcome: columnOf(outcome),
    started_ms: columnOf(z.number()),
    ended_ms: columnOf(z.number()),
    input_tokens: columnOf(z.number()),
    output_tokens: columnOf(z.number()),
    cost_usd: columnOf(z.number()),
    first_token_ms: columnOf(z.number()),
    flags: columnOf(z.number()),
  }),
});
export type OutlineRow = Awaited<ReturnType<typeof readOutline>>[number];

export const readUnflagged = defineQuery({
  name: 'trace_outline_unflagged',
  file: 'trace/outline_unflagged.sql',
  params: z.object({ ...oneTrace, rows: z.int() }).extend(FLAG_PARAMS),
  row: z.object({ span_id: z.string(), started_ms: count, first_token: z.int(), bits: count }),
});

const sampledTraceRow = traceRow.extend({ sampled: z.boolean() });
export type TraceRow = z.output<typeof sampledTraceRow>;

export const readTraceRows = defineQuery({
  name: 'trace_row',
  file: 'trace/trace.sql',
  params: traceRange,
  row: sampledTraceRow,
});

export const readLocatedRows = defineQuery({
  name: 'trace_located',
  file: 'trace/located.sql',
  params: z.object({ org_id: z.string(), trace_id: z.string() }),
  row: sampledTraceRow.extend({ from_ms: count, to_ms: count }),
});

export const readModels = defineQuery({
  name: 'trace_models',
  file: 'trace/models.sql',
  params: traceRange,
  row: z.object({ models: z.array(z.string()), received_ms: count, roots: count, spans: count }),
});

const failureParams = z.object({ ...oneTrace, rows: z.int(), chars: z.int() });

export const readFailures = defineQuery({
  name: 'trace_failures',
  file: 'trace/failures.sql',
  params: failureParams,
  row: z.object({ span_id: z.string(), started_ms: count, ...place, message: z.string() }),
});

export const readFailureTexts = defineQuery({
  name: 'trace_failure_texts',
  file: 'trace/failure_texts.sql',
  params: failureParams,
  row: z.object({ ...place, message: z.string() }),
});

export const readSpan = defineQuery({
  name: 'trace_span',
  file: 'trace/span.sql',
  params: z.object({ ...oneTrace, span_id: z.string() }),
  row: z.object({
    span_id: z.string(),
    parent_span_id: z.string(),
    event_hex: z.string(),
    kind,
    name: z.string(),
    source_format: z.string(),
    model: z.string(),
    outcome,
    started_at: z.string(),
    ended_at: z.string(),
    started_ms: count,
    ended_ms: count,
    agent_id: z.string(),
    input_tokens: z.int(),
    output_tokens: z.int(),
    cached_input_tokens: z.int(),
    first_token_ms: z.int(),
    cost_usd: z.number(),
    price_source: z.string(),
    prompt_name: z.string(),
    prompt_version: z.string(),
    attributes: z.string(),
    tags: z.array(z.string()),
    sampled: z.boolean(),
    flags: z.int(),
    ...place,
  }),
});
export type SpanRow = Awaited<ReturnType<typeof readSpan>>[number];

const spanPlace = { org_id: z.string(), trace_id: z.string(), started_ms: z.int(), ...place };

export const readSpanTexts = defineQuery({
  name: 'trace_span_texts',
  file: 'trace/span_texts.sql',
  params: z.object({ ...spanPlace, chars: z.int() }),
  row: z.object({ prompt: z.string(), response: z.string(), prompt_chars: z.int(), response_chars: z.int() }),
});

export const readChildIds = defineQuery({
  name: 'trace_span_children',
  file: 'trace/children.sql',
  params: z.object({ ...oneTrace, span_id: z.string(), rows: z.int() }),
  row: z.object({ span_id: z.string(), flags: z.int() }),
});

export const readColdDays = defineQuery({
  name: 'trace_cold_days',
  file: 'trace/cold_days.sql',
  params: z.object({ org_id: z.string(), days: z.array(z.string()) }),
  row: z.object({ cold_day: z.string(), left_on: z.string() }),
});

export const readMatches = defineQuery({
  name: 'trace_matches',
  file: 'trace/matches.sql',
  params: z.object({
    ...oneTrace,
    words: z.array(z.string()),
    /** Bytes up to which texts are whole, and characters of a text that is not. */
    bytes: z.int(),
    chars: z.int(),
    rows: z.int(),
  }),
  row: z.object({
    span_id: z.string(),
    prompt: z.string(),
    response: z.string(),
  }),
});

export const readWordedPlaces = defineQuery({
  name: 'trace_worded_places',
  file: 'trace/worded_places.sql',
  params: z.object({ ...oneTrace, words: z.array(z.string()) }),
  row: z.object({ span_id: z.string(), started_at: z.string(), ...place, text_words: z.int() }),
});
export type WordedPlace = Awaited<ReturnType<typeof readWordedPlaces>>[number];

export const readCalls = defineQuery({
  name: 'trace_calls',
  file: 'trace/calls.sql',
  params: z.object({ ...oneTrace, rows: z.int() }),
  row: z.object({
    span_id: z.string(),
    parent_span_id: z.string(),
    kind,
    started_at: z.string(),
    started_ms: count,
    bytes: count,
    sampled: z.boolean(),
    flags: z.int(),
    ...place,
  }),
});
export type CallRow = Awaited<ReturnType<typeof readCalls>>[number];

export const readParents = defineQuery({
  name: 'trace_parents',
  file: 'trace/parents.sql',
  params: z.object({ ...oneTrace, rows: z.int() }),
  row: z.object({ span_id: columnOf(z.string()), parent_span_id: columnOf(z.string()) }),
});

const places = {
  org_id: z.string(),
  trace_id: z.string(),
  times: z.array(z.string()),
  seqs: z.array(uint64),
  indexes: z.array(z.int()),
  subs: z.array(z.int()),
};

export const readCallDetails = defineQuery({
  name: 'trace_call_details',
  file: 'trace/call_details.sql',
  params: z.object({ ...places, chars: z.int() }),
  row: z.object({
    span_id: z.string(),
    name: z.string(),
    model: z.string(),
    outcome,
    ended_ms: count,
    input_tokens: z.int(),
    output_tokens: z.int(),
    cost_usd: z.number(),
    tool_calls: z.string(),
    reasoning: z.string(),
    finish_reasons: z.array(z.string()),
    call_id: z.string(),
    message: z.string(),
    ...place,
  }),
});
export type CallDetails = Awaited<ReturnType<typeof readCallDetails>>[number];

const textRow = z.object({ ...place, prompt: z.string(), response: z.string() });

export const readCallTexts = defineQuery({
  name: 'trace_call_texts',
  file: 'traces/texts.sql',
  params: z.object(places),
  row: textRow,
});

export const readWordedTexts = defineQuery({
  name: 'trace_worded_place_texts',
  file: 'traces/texts.sql',
  params: z.object(places),
  row: textRow,
});
export type WordedText = z.output<typeof textRow>;

/** Returns the key of a position in the ingest log. */
export const placeKey = ({
  log_seq,
  log_index,
  log_sub,
}: {
  log_seq: string;
  log_index: number;
  log_sub: number;
}): string => `${log_seq}:${log_index}:${log_sub}`;
