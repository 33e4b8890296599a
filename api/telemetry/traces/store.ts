// The trace endpoints' reads of ClickHouse: each query of sql/queries/traces with the shapes of its
// parameters and rows.
import { z } from 'zod';
import { outcome } from '../../../schemas/formats/fields.ts';
import { defineQuery } from '../../../sql/client/query.ts';
import { traceRow } from '../../http/trace_items.ts';
import { filterShape } from './filters.ts';

/** Int64 and UInt64 arrive as text; these values stay below 2^53. */
const count = z.coerce.number().pipe(z.int());
const millis = count;
/** A UInt64 inside an array is sent as a bare number. */
const uint64 = z.string().transform(BigInt);

const listFilters = z.object(filterShape);

/** `rank` is the number that a ranked list is sorted by. */
const listRow = traceRow.extend({ rank: z.number().optional() });
export type TraceRow = z.output<typeof listRow>;

/** Returns a row if the asked time has a trace that only its spans describe. */
export const readHasUndescribed = defineQuery({
  name: 'trace_has_undescribed',
  file: 'traces/has_undescribed.sql',
  params: z.object({ org_id: z.string(), since_ms: z.int().optional(), until_ms: z.int().optional() }),
  row: z.object({ found: z.int() }),
});

const foundTraces = { params: z.object({ ...filterShape, rows: z.int() }), row: z.object({ trace_key: z.string() }) };

export const readByWords = defineQuery({
  name: 'trace_found_by_words',
  file: 'traces/found_by_words.sql',
  ...foundTraces,
});

export const readByAttributes = defineQuery({
  name: 'trace_found_by_attributes',
  file: 'traces/found_by_attributes.sql',
  ...foundTraces,
});

export const readTotal = defineQuery({
  name: 'trace_total',
  file: 'traces/total.sql',
  params: listFilters,
  row: z.object({
    total: count,
    /** With words: the keys of the traces; empty if there are many. */
    trace_keys: z.array(z.string()).optional(),
  }),
});
export type TotalRow = Awaited<ReturnType<typeof readTotal>>[number];

export const readPage = defineQuery({
  name: 'trace_page',
  file: 'traces/page.sql',
  params: z.object({
    ...filterShape,
    from_ms: z.int().optional(),
    from_key: z.string().optional(),
    from_version: z.string().optional(),
    rows: z.int(),
  }),
  row: listRow,
});

/** First rows of a list, with the number of its traces and rows up to `whole_rows`. */
export const readWhole = defineQuery({
  name: 'trace_list',
  file: 'traces/whole.sql',
  params: z.object({ ...filterShape, rows: z.int(), whole_rows: z.int() }),
  row: listRow.extend({ total: count, all_rows: count }),
});

/** Rows of the given traces; `matched` has 1 for each of the filters that the row matches, else 0. */
export const readChangedRows = defineQuery({
  name: 'traces_changed',
  file: 'traces/changed.sql',
  params: z.object({
    org_id: z.string(),
    trace_keys: z.array(uint64),
    from_ms: z.int(),
    to_ms: z.int(),
    filters: z.array(z.object(filterShape)),
  }),
  row: listRow.extend({ matched: z.array(z.int()) }),
});

export const readHours = defineQuery({
  name: 'trace_hours',
  file: 'traces/hours.sql',
  params: listFilters,
  row: z.object({ hour_ms: millis, traces: count }),
});

export const readPosition = defineQuery({
  name: 'trace_position',
  file: 'traces/position.sql',
  params: z.object({ ...filterShape, skipped_before: z.int() }),
  row: z.object({ started_ms: millis, trace_key: z.string() }),
});

/** Exactly one of the three is set. */
const ranking = {
  by_duration: z.literal(true).optional(),
  by_cost: z.literal(true).optional(),
  by_tokens: z.literal(true).optional(),
};

export const readRanked = defineQuery({
  name: 'trace_ranked',
  file: 'traces/ranked.sql',
  params: z.object({
    ...filterShape,
    ...ranking,
    from_rank: z.number().optional(),
    from_ms: z.int().optional(),
    from_key: z.string().optional(),
    from_version: z.string().optional(),
    rows: z.int(),
  }),
  row: listRow,
});

export const readRankedPosition = defineQuery({
  name: 'trace_ranked_position',
  file: 'traces/ranked_position.sql',
  params: z.object({ ...filterShape, ...ranking, skipped_before: z.int() }),
  row: z.object({ started_ms: millis, trace_key: z.string(), rank: z.number() }),
});

/** Texts of traces that have all the words, as lists of the same order. */
export const readWordedTexts = defineQuery({
  name: 'trace_worded_texts',
  file: 'traces/worded_texts.sql',
  params: z.object({
    org_id: z.string(),
    from_ms: z.int(),
    to_ms: z.int(),
    trace_keys: z.array(uint64),
    words: z.array(z.string()),
  }),
  row: z.object({
    trace_key: z.string(),
    docs: z.array(z.string()),
    times: z.array(millis),
    /** Number of words of each text. */
    lengths: z.array(z.int()),
  }),
});

export const readDocumentTexts = defineQuery({
  name: 'trace_document_texts',
  file: 'traces/document_texts.sql',
  params: z.object({ org_id: z.string(), times: z.array(z.string()), docs: z.array(uint64) }),
  row: z.object({ doc: z.string(), trace_key: z.string(), prompt: z.string(), response: z.string() }),
});
export type DocumentText = Awaited<ReturnType<typeof readDocumentTexts>>[number];

export const readLookup = defineQuery({
  name: 'trace_lookup',
  file: 'traces/lookup.sql',
  params: z.object({ trace_id: z.string() }),
  row: z.object({ org_id: z.string(), from_ms: millis, to_ms: millis }),
});

const oneTrace = { org_id: z.string(), trace_id: z.string(), from_ms: z.int(), to_ms: z.int() };
const traceRange = z.object(oneTrace);
/** One trace of one organization, and the range of its spans' starts. */
export type TraceRange = z.input<typeof traceRange>;

const spanRow = z.object({
  span_id: z.string(),
  parent_span_id: z.string(),
  event_hex: z.string(),
  kind: z.string(),
  name: z.string(),
  source_format: z.string(),
  model: z.string(),
  outcome,
  started_at: z.string(),
  ended_at: z.string(),
  started_ms: millis,
  ended_ms: millis,
  input_tokens: z.int(),
  output_tokens: z.int(),
  cost_usd: z.number(),
  attributes: z.string(),
  tags: z.array(z.string()),
  sampled: z.boolean(),
  flags: z.int(),
  storage_bytes: z.int(),
  log_seq: z.string(),
  log_index: z.int(),
  log_sub: z.int(),
  total: count.optional(),
});
export type SpanRow = z.output<typeof spanRow>;

const SPAN_STREAM_TIMEOUT_MS = 600_000;

export const readSpans = defineQuery({
  name: 'trace_spans',
  file: 'traces/spans.sql',
  params: z.object({ ...oneTrace, rows: z.int(), counted: z.literal(true) }),
  row: spanRow,
});

/** Streams all spans of a trace, for as long as the reader takes. */
export const streamSpans = defineQuery({
  name: 'trace_export',
  file: 'traces/spans.sql',
  params: traceRange,
  row: spanRow,
  timeoutMs: SPAN_STREAM_TIMEOUT_MS,
});

export const readChildren = defineQuery({
  name: 'trace_children',
  file: 'traces/children.sql',
  params: z.object({ ...oneTrace, span_ids: z.array(z.string()) }),
  row: z.object({
    parent_span_id: z.string(),
    children: z.array(z.string()),
    has_messages: z.coerce.boolean(),
  }),
});

const textRow = z.object({
  log_seq: z.string(),
  log_index: z.int(),
  log_sub: z.int(),
  prompt: z.string(),
  response: z.string(),
});

export const readAllTexts = defineQuery({
  name: 'trace_all_texts',
  file: 'traces/all_texts.sql',
  params: z.object({ ...oneTrace, rows: z.int() }),
  row: textRow,
});

export const readTexts = defineQuery({
  name: 'trace_texts',
  file: 'traces/texts.sql',
  params: z.object({
    org_id: z.string(),
    trace_id: z.string(),
    times: z.array(z.string()),
    seqs: z.array(uint64),
    indexes: z.array(z.int()),
    subs: z.array(z.int()),
  }),
  row: textRow,
});

export const readTimeline = defineQuery({
  name: 'trace_timeline',
  file: 'traces/timeline.sql',
  params: z.object({ ...oneTrace, rows: z.int() }),
  row: z.object({
    span_id: z.string(),
    kind: z.string(),
    name: z.string(),
    model: z.string(),
    outcome,
    started_ms: millis,
    ended_ms: millis,
    total: count,
  }),
});
