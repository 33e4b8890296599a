// The reads of previews from ClickHouse.
import { z } from 'zod';
import { defineQuery } from '../../../sql/client/query.ts';
import { filterShape } from './filters.ts';

const count = z.coerce.number().pipe(z.int());
const some = { org_id: z.string(), trace_ids: z.array(z.string()) };
/** Start of a span in milliseconds, and its place in the log; log_seq is 0 for no span. */
const place = z.tuple([count, z.coerce.string(), z.int(), z.int()]);
export type SpanPlace = z.output<typeof place>;

export const readPreviewTraces = defineQuery({
  name: 'trace_preview_traces',
  file: 'traces/preview_traces.sql',
  params: z.object({ ...filterShape, trace_ids: z.array(z.string()) }),
  row: z.object({ trace_id: z.string(), from_ms: count, to_ms: count }),
});

export const readPreviewSpans = defineQuery({
  name: 'trace_preview_spans',
  file: 'traces/preview_spans.sql',
  params: z.object({
    ...some,
    ranges: z.array(z.object({ from_ms: z.int(), to_ms: z.int() })),
    chars: z.int(),
  }),
  row: z.object({
    trace_id: z.string(),
    models: z.array(z.string()),
    first_call: place,
    last_call: place,
    failed_name: z.string(),
    failed: place,
    failed_message: z.string(),
  }),
});

export const readPreviewTexts = defineQuery({
  name: 'trace_preview_texts',
  file: 'traces/preview_texts.sql',
  params: z.object({
    org_id: z.string(),
    times: z.array(z.string()),
    seqs: z.array(z.string().transform(BigInt)),
    indexes: z.array(z.int()),
    subs: z.array(z.int()),
    chars: z.int(),
    whole_bytes: z.int(),
  }),
  row: z.object({ seq: z.string(), log_index: z.int(), log_sub: z.int(), asked: z.string(), answer: z.string() }),
});

export const readPreviewVerdicts = defineQuery({
  name: 'trace_preview_verdicts',
  file: 'traces/preview_verdicts.sql',
  params: z.object({ ...some, since_ms: z.int() }),
  row: z.object({
    trace_id: z.string(),
    judge_id: z.string(),
    name: z.string(),
    verdict: z.string(),
    score: z.number().nullable(),
  }),
});
