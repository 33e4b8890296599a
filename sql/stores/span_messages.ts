// Reads the messages that log records hold of spans, for every reader that shows a span's prompt and
// response.
import { z } from 'zod';
import { defineQuery } from '../client/query.ts';

/** Maximum bytes of the messages that one read returns. */
export const SPAN_MESSAGES_BYTES_MAX = 32 * 1024 * 1024;
/** Maximum number of records that one read returns. */
const SPAN_MESSAGES_MAX = 5000;

/** A UInt64 inside an array is sent as a bare number. */
const uint64 = z.string().transform(BigInt);
const range = { org_id: z.string(), trace_ids: z.array(z.string()), from_ms: z.int(), to_ms: z.int() };
const place = { trace_id: z.string(), log_seq: z.string(), log_index: z.int(), log_sub: z.int() };

/**
 * Resolves with messages in the order in which they were said.
 *
 * `span_ids` are the spans asked for; without it, all spans of the traces.
 */
export const readSpanMessages = defineQuery({
  name: 'span_messages',
  file: 'span_messages/of_spans.sql',
  params: z.object({
    ...range,
    span_ids: z.array(z.string()).optional(),
    rows: z.int().default(SPAN_MESSAGES_MAX),
  }),
  row: z.object({
    trace_id: z.string(),
    span_id: z.string(),
    name: z.string(),
    prompt: z.string(),
    response: z.string(),
  }),
});

/** Resolves with the spans whose messages the log records at the given places hold. */
export const readMessageSpans = defineQuery({
  name: 'span_message_parents',
  file: 'span_messages/parents.sql',
  params: z.object({ ...range, seqs: z.array(uint64), indexes: z.array(z.int()), subs: z.array(z.int()) }),
  row: z.object({
    ...place,
    span_id: z.string(),
    name: z.string(),
    model: z.string(),
    outcome: z.enum(['success', 'error', 'timeout']),
    cost_usd: z.number(),
    started_at: z.string(),
  }),
});
