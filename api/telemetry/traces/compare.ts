// Compares two traces: takes two ids and the requested fields, returns one row per field. Both
// traces are read concurrently, each with one read of its sums, and one more of its scores or texts
// only if those are requested.
import { z } from 'zod';
import { outcome } from '../../../schemas/formats/fields.ts';
import { compareTraces, type ComparedTrace } from '../../../pipeline/domain/traces/compare.ts';
import { type ClickHouse, isTooLarge } from '../../../sql/client/client.ts';
import { defineQuery } from '../../../sql/client/query.ts';
import { ApiError } from '../../http/errors.ts';
import type { CompareBody } from './compare_schema.ts';
import { locateTrace, traceNotFound } from './locate.ts';
import { readSpans, type TraceRange } from './store.ts';
import { placeKey, textsOf } from './tree.ts';

/** Spans whose texts are searched, as many as a tree has. */
const TEXT_SPANS_MAX = 1000;
const TEXT_BYTES_MAX = 16 * 1024 * 1024;

export interface CompareDeps {
  clickhouse: ClickHouse;
  policyOf: (org_id: string) => { compare_threshold_percent: number };
}

const count = z.coerce.number().pipe(z.int());
const range = z.object({ org_id: z.string(), trace_id: z.string(), from_ms: z.int(), to_ms: z.int() });

const readCompared = defineQuery({
  name: 'trace_compared',
  file: 'traces/compared.sql',
  params: range,
  row: z.object({
    spans: count,
    duration_ms: count,
    input_tokens: count,
    output_tokens: count,
    cost_usd: z.number(),
    outcome,
    root_span_name: z.string(),
    root_agent_id: z.string(),
    first_agent_id: z.string(),
    models: z.array(z.string()),
    tags: z.array(z.string()),
  }),
});

const readScores = defineQuery({
  name: 'trace_compared_scores',
  file: 'traces/compared_scores.sql',
  params: range.omit({ to_ms: true }),
  row: z.object({ judge_id: z.string(), judge_name: z.string(), score: z.number() }),
});

/** Serves POST /v1/traces/compare. */
export async function compareTwoTraces(deps: CompareDeps, org_id: string, body: CompareBody, signal: AbortSignal) {
  const { baseline_trace_id, candidate_trace_id, fields } = body;
  const { compare_threshold_percent } = deps.policyOf(org_id);
  const [baseline, candidate] = await Promise.all([
    readTrace(deps.clickhouse, { org_id, trace_id: baseline_trace_id, named: 'baseline_trace_id', fields }, signal),
    readTrace(deps.clickhouse, { org_id, trace_id: candidate_trace_id, named: 'candidate_trace_id', fields }, signal),
  ]);
  return {
    data: {
      baseline_trace_id,
      candidate_trace_id,
      fields: compareTraces(baseline, candidate, fields, compare_threshold_percent),
    },
  };
}

interface Wanted {
  org_id: string;
  trace_id: string;
  /** Field of the request that has the id. */
  named: string;
  fields: readonly string[];
}

/** @throws ApiError trace_not_found, cross_org_access, invalid_request for texts that are too large */
async function readTrace(
  clickhouse: ClickHouse,
  { org_id, trace_id, named, fields }: Wanted,
  signal: AbortSignal,
): Promise<ComparedTrace> {
  const place = await locateTrace(clickhouse, org_id, trace_id, signal).catch((error: unknown) => {
    throw error instanceof ApiError ? new ApiError(error.code, `${named}: ${error.detail}`) : error;
  });
  const { from_ms } = place;
  const [[sums], scores, texts] = await Promise.all([
    readCompared(clickhouse, place, { signal }),
    fields.some((field) => field.startsWith('judge_score'))
      ? readScores(clickhouse, { org_id, trace_id, from_ms }, { signal })
      : [],
    fields.includes('prompt') || fields.includes('response')
      ? readTexts(clickhouse, place, signal)
      : { prompt: null, response: null },
  ]);
  if (sums === undefined) throw traceNotFound();
  const { root_span_name, root_agent_id, first_agent_id, ...rest } = sums;
  return {
    ...rest,
    root_span_name: orNull(root_span_name),
    agent_id: orNull(root_agent_id) ?? orNull(first_agent_id),
    ...texts,
    scores,
  };
}

/**
 * Returns the prompt and the response of a trace. The prompt is that of the root, else of the
 * earliest model call, else of the earliest span that has one. The response is that of the root,
 * else of the model call that ended last, else of the last span to end that has one.
 */
async function readTexts(clickhouse: ClickHouse, place: TraceRange, signal: AbortSignal) {
  const rows = await readSpans(clickhouse, { ...place, rows: TEXT_SPANS_MAX, counted: true }, { signal });
  const texts = await textsOf(clickhouse, place, rows, { signal, bytesMax: TEXT_BYTES_MAX }).catch((error: unknown) => {
    if (!isTooLarge(error)) throw error;
    throw new ApiError(
      'invalid_request',
      `fields: the texts of ${place.trace_id} have more than ${TEXT_BYTES_MAX} bytes`,
    );
  });
  const spans = rows.map((row) => ({ ...row, texts: texts.get(placeKey(row)) }));
  const rank = ({ parent_span_id, kind }: { parent_span_id: string; kind: string }) =>
    parent_span_id === '' ? 0 : kind === 'llm' ? 1 : 2;
  const asked = spans.toSorted((a, b) => rank(a) - rank(b) || a.started_ms - b.started_ms);
  const given = spans.toSorted((a, b) => rank(a) - rank(b) || b.ended_ms - a.ended_ms);
  return {
    prompt: asked.map((span) => span.texts?.prompt ?? '').find((text) => text !== '') ?? null,
    response: given.map((span) => span.texts?.response ?? '').find((text) => text !== '') ?? null,
  };
}

const orNull = (text: string): string | null => (text === '' ? null : text);
