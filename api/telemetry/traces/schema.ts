// Request and response shapes of traces.
import { z } from 'zod';
import { outcome } from '../../../schemas/formats/fields.ts';
import { cursorMeta, cursorQuery } from '../../http/list_pages.ts';
import { decodeCursor, encodeCursor } from '../../http/pagination.ts';
import { spanItem } from '../../http/trace_items.ts';
import { filterParams } from './filter_params.ts';

const RANKINGS = ['duration_ms', 'cost_usd', 'tokens'] as const;
/** Orders of the list other than by time. */
export type Ranking = (typeof RANKINGS)[number];

export const listQuery = z
  .object({
    ...cursorQuery(),
    ...filterParams,
    sort: z
      .enum(['started_at', ...RANKINGS])
      .default('started_at')
      .describe(
        'Order of the list: the newest first, or the longest, the most expensive or the one with the most tokens. Orders other than started_at need `since`, at most 31 days before `until`',
      ),
  })
  .strip();
export type ListQuery = z.output<typeof listQuery>;

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
  /** Order of a ranked list, and the trace's number in it. */
  rank?: { by: Ranking; value: number };
}

const place = [z.int(), z.string().regex(/^\d{1,20}$/), z.int().min(0)] as const;
const positionTuple = z.union([z.tuple(place), z.tuple([...place, z.enum(RANKINGS), z.number()])]);

export function cursorOf({ ms, key, before, rank }: ListPosition): string {
  return encodeCursor(rank === undefined ? [ms, key, before] : [ms, key, before, rank.by, rank.value]);
}

/** @throws ApiError invalid_request for a cursor that this list did not return */
export function positionOf(cursor: string): ListPosition {
  const [ms, key, before, by, value] = decodeCursor(cursor, positionTuple);
  return { ms, key, before, ...(by === undefined || value === undefined ? {} : { rank: { by, value } }) };
}

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
