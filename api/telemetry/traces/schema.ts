// Request and response shapes of traces.
import { z } from 'zod';
import { outcome } from '../../../schemas/formats/fields.ts';
import { cursorMeta, cursorQuery } from '../../http/list_pages.ts';
import { decodeCursor, encodeCursor } from '../../http/pagination.ts';
import { listParam } from '../../http/route.ts';
import { timeParam } from '../../http/time_param.ts';
import { parseSearch } from './search_text.ts';

const SEARCH_CHARS_MAX = 1000;
const SEARCH_WORDS_MAX = 32;
const DURATION_MAX_MS = 1_000_000_000_000;

const durationParam = z
  .string()
  .regex(/^\d{1,12}$/, { error: 'must be whole milliseconds' })
  .transform(Number)
  .pipe(z.int().max(DURATION_MAX_MS));
const searchParam = z
  .string()
  .max(SEARCH_CHARS_MAX)
  .transform((text) => (text.trim() === '' ? undefined : parseSearch(text)))
  .refine((search) => search !== null, { error: 'holds no word to look for' })
  .refine((search) => (search?.words.length ?? 0) <= SEARCH_WORDS_MAX, {
    error: `must have at most ${SEARCH_WORDS_MAX} different words`,
  })
  .meta({
    type: 'string',
    description:
      'Words that must all occur in the prompt and response of one span, ignoring case. "Quoted phrases" match as phrases',
  });

export const listQuery = z
  .object({
    ...cursorQuery(),
    agent_id: z.string().min(1).optional(),
    outcome: outcome.optional(),
    min_duration_ms: durationParam.optional(),
    max_duration_ms: durationParam.optional(),
    since: timeParam.optional().describe('Traces that started at or after this time'),
    until: timeParam.optional().describe('Traces that started at or before this time'),
    search: searchParam.optional(),
    tags: listParam(z.string()).optional().describe('Traces with any of these tags'),
    session_id: z.string().min(1).optional(),
    user_id: z.string().min(1).optional(),
  })
  .strip();
export type ListQuery = z.output<typeof listQuery>;

export const traceItem = z.object({
  trace_id: z.string(),
  root_span_name: z.string().nullable().describe('null until the root has arrived'),
  agent_id: z.string().nullable(),
  outcome,
  duration_ms: z.int(),
  input_tokens: z.int(),
  output_tokens: z.int(),
  cost_usd: z.number(),
  started_at: z.iso.datetime(),
  ended_at: z.iso.datetime(),
  tags: z.array(z.string()),
  span_count: z.int(),
  session_id: z.string().nullable(),
  user_id: z.string().nullable(),
});
export type TraceItem = z.infer<typeof traceItem>;

export const listMeta = cursorMeta.extend({
  truncated: z
    .literal(true)
    .optional()
    .describe('A search for phrases covered the newest traces only; total counts those'),
});

/** Position after which a page begins: a trace. It is stable while new traces arrive. */
export interface ListPosition {
  /** started_at, milliseconds since the epoch. */
  ms: number;
  /** trace_key; a string, since it exceeds the safe integers. */
  key: string;
  /** Number of traces before the page. */
  before: number;
}

const positionTuple = z.tuple([z.int(), z.string().regex(/^\d{1,20}$/), z.int().min(0)]);

export function cursorOf({ ms, key, before }: ListPosition): string {
  return encodeCursor([ms, key, before]);
}

/** @throws ApiError invalid_request for a cursor that this list did not return */
export function positionOf(cursor: string): ListPosition {
  const [ms, key, before] = decodeCursor(cursor, positionTuple);
  return { ms, key, before };
}

export const traceParams = z.object({ trace_id: z.string() });

export const spanItem = z.object({
  span_id: z.string(),
  parent_span_id: z.string().nullable().describe('null for the root'),
  event_id: z.string(),
  name: z.string(),
  source_format: z.string(),
  model: z.string().describe('Empty if no model was called'),
  outcome,
  duration_ms: z.int(),
  input_tokens: z.int(),
  output_tokens: z.int(),
  cost_usd: z.number(),
  prompt: z.string().optional().describe('Returned for LLM spans, and for other spans that have one'),
  response: z.string().optional().describe('Returned for LLM spans, and for other spans that have one'),
  started_at: z.iso.datetime(),
  ended_at: z.iso.datetime(),
  attributes: z.record(z.string(), z.unknown()).describe('Attributes as sent, and span_kind: llm, tool, event or app'),
  tags: z.array(z.string()),
  sampled: z.boolean().describe('false if sampling kept only a summary'),
  children: z.array(z.string()),
});
export type SpanItem = z.infer<typeof spanItem>;

export const tree = z.object({
  trace_id: z.string(),
  root_span_id: z.string().nullable().describe('null until the root has arrived'),
  spans: z
    .array(spanItem)
    .describe(
      'Ordered by parent_span_id, the root first, then by start time. children are the ids of children in this response',
    ),
});
export const treeMeta = z.object({
  total: z.int().describe('Number of spans of the trace'),
  truncated: z.boolean().describe('Whether the response has fewer spans or texts than the trace'),
});

export const timeline = z.object({
  trace_id: z.string(),
  tracks: z.array(
    z.object({
      label: z.enum(['LLM calls', 'Tool calls', 'Events']),
      events: z.array(
        z.object({
          span_id: z.string(),
          name: z.string(),
          start_ms: z.int().describe('Milliseconds from the start of the trace'),
          end_ms: z.int(),
          model: z.string().optional(),
          outcome,
        }),
      ),
    }),
  ),
});
export type Timeline = z.infer<typeof timeline>;

export const exportBody = z.strictObject({
  format: z.enum(['json', 'ndjson']).default('json'),
  include_prompts: z.boolean().default(true),
  include_responses: z.boolean().default(true),
  anonymize_pii: z
    .boolean()
    .default(false)
    .describe(
      'Replaces what the PII policy matches (all kinds if none is set) with [EMAIL], [PHONE], [CARD], [IP], [SSN] or the label of a custom pattern, whether or not events are redacted on arrival',
    ),
});
export type ExportBody = z.output<typeof exportBody>;
export const exportFile = z
  .object({ trace_id: z.string(), spans: z.array(spanItem) })
  .describe('One span per line with format ndjson');
