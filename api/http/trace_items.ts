// Shapes of the items that several slices return: a trace of a list, a span of a tree, and a score; and
// the rows of the store that a trace of a list is made from.
import { z } from 'zod';
import { outcome } from '../../schemas/formats/fields.ts';

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

/** Int64 and UInt64 arrive as text; these values stay below 2^53. */
const count = z.coerce.number().pipe(z.int());

/** Columns of a row of the table traces, as sql/queries/traces/columns.sql reads them. */
export const traceRow = z.object({
  trace_id: z.string(),
  trace_key: z.string(),
  version: z.string(),
  sign: z.int(),
  started_ms: count,
  started_at: z.string(),
  ended_at: z.string(),
  duration_ms: count,
  root_span_name: z.string(),
  agent_id: z.string(),
  outcome,
  session_id: z.string(),
  user_id: z.string(),
  tags: z.array(z.string()),
  spans: z.int(),
  input_tokens: count,
  output_tokens: count,
  cost_usd: z.number(),
});

const orNull = (text: string): string | null => (text === '' ? null : text);

/** Returns a trace as lists show it. */
export function traceItemOf(row: z.output<typeof traceRow>): TraceItem {
  return {
    trace_id: row.trace_id,
    root_span_name: orNull(row.root_span_name),
    agent_id: orNull(row.agent_id),
    outcome: row.outcome,
    duration_ms: row.duration_ms,
    input_tokens: row.input_tokens,
    output_tokens: row.output_tokens,
    cost_usd: row.cost_usd,
    started_at: row.started_at,
    ended_at: row.ended_at,
    tags: row.tags,
    span_count: row.spans,
    session_id: orNull(row.session_id),
    user_id: orNull(row.user_id),
  };
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
  duplicate_of: z
    .string()
    .optional()
    .describe('Id of the span that counts the same model call, where this one has no tokens and no cost for it'),
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

/** Returns the field duplicate_of of a span with these attributes, where it has one. */
export function duplicateField({ duplicate_of }: Readonly<Record<string, unknown>>): Pick<SpanItem, 'duplicate_of'> {
  return typeof duplicate_of === 'string' ? { duplicate_of } : {};
}

const CATEGORY_CHARS_MAX = 1000;

export const scoreValue = z.union([z.number(), z.boolean(), z.string().min(1).max(CATEGORY_CHARS_MAX)], {
  error: `must be a number, true or false, or a category of 1 to ${CATEGORY_CHARS_MAX} characters`,
});

/** Who gave a score: people and applications, judges, or evaluation results of OpenTelemetry. */
export const scoreSource = z.enum(['user', 'judge', 'otel']);

export const scoreItem = z
  .object({
    score_id: z.string().nullable().describe('null for scores of judges'),
    trace_id: z.string(),
    span_id: z.string().nullable(),
    name: z.string().describe('Name of the score. For judges, the name of the judge'),
    value: scoreValue.nullable().describe('null if the judge failed'),
    data_type: z.enum(['numeric', 'boolean', 'categorical']),
    comment: z.string().nullable().describe('For judges, the reason'),
    source: scoreSource,
    author: z.object({ type: z.enum(['user', 'api_key', 'judge', 'otel']), id: z.string() }),
    verdict: z.enum(['pass', 'warn', 'fail', 'error']).nullable().describe('Of judges'),
    judge_version: z.int().nullable(),
    eval_id: z.string().nullable().describe('Eval that created the score. null for live traffic and for users'),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'Score' });
export type ScoreItem = z.infer<typeof scoreItem>;
