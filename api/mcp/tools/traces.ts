// Tools that find and compare traces.
import { z } from 'zod';
import type { SnippetHit } from '../../telemetry/spans/schema.ts';
import type { Preview } from '../../telemetry/traces/preview_schema.ts';
import type { TraceItem } from '../../http/trace_items.ts';
import { Digest } from '../digest.ts';
import { clip } from '../tokens.ts';
import { args, defineTool, limit, maxChars, queryOf, time, timeOf, traceId, usd } from '../tool.ts';

const PREVIEW_CHARS = 120;
const SNIPPET_CHARS = 200;
const NAME_CHARS = 80;
const SEARCH_BUDGET = 2500;
const FAILURES_BUDGET = 2000;
const COMPARE_BUDGET = 2000;
/** Traces that an incident is shown with. */
const SHOWN_TRACES = 3;
const outcome = z.enum(['success', 'error', 'timeout']);
const text = z.string().min(1).max(1024);

export const searchTraces = defineTool({
  name: 'search_traces',
  title: 'Search traces',
  description:
    'Lists traces, newest first, with outcome, duration, cost, tokens, error and previews. Start here; then get_trace.',
  routes: ['listTraces', 'getTracePreviews'],
  input: z.object({
    q: z.string().max(1000).optional().describe('words that must all occur in one span; "phrases" in quotes'),
    outcome: outcome.optional(),
    agent_id: text.optional(),
    model: text.optional(),
    tags: z.array(text).max(10).optional(),
    user_id: text.optional(),
    session_id: text.optional(),
    min_duration_ms: z.int().min(0).optional(),
    min_cost_usd: z.number().min(0).optional(),
    since: time.default('24h').describe('24h, 7d, or ISO 8601'),
    until: time.optional(),
    limit: limit(10, 50),
    cursor: z.string().max(1000).optional(),
    max_chars: maxChars(10_000),
  }),
  run: async ({ q, since, until, max_chars, ...filters }, call) => {
    const query = {
      ...filters,
      search: q,
      since: timeOf(since, call.now),
      until: until === undefined ? undefined : timeOf(until, call.now),
    };
    const { data, meta } = await call.route('listTraces', { query: queryOf(query) });
    const ids = data.map(({ trace_id }) => trace_id);
    const previews =
      ids.length === 0
        ? []
        : (
            await call.route('getTracePreviews', {
              query: { trace_ids: ids, fields: ['user_text', 'answer', 'error'] },
            })
          ).data;
    const byId = new Map(previews.map((one) => [one.trace_id, one]));
    const total = Number(meta['total'] ?? data.length);
    const digest = new Digest(SEARCH_BUDGET, max_chars).head(
      `${total} traces${total > data.length ? `, ${data.length} of them below` : ''}.`,
    );
    digest.info({ total, next_cursor: meta['next_cursor'] ?? null });
    for (const trace of data) if (!digest.row(...traceRow(trace, byId.get(trace.trace_id)))) break;
    const next =
      digest.rows < data.length
        ? `the answer is full; ask with ${args({ limit: Math.max(1, digest.rows) })} and page with the cursor, or narrow the filters`
        : typeof meta['next_cursor'] === 'string'
          ? `search_traces ${args({ ...filters, q, since, until, cursor: meta['next_cursor'] })}`
          : null;
    return digest.answer(next);
  },
});

function traceRow(trace: TraceItem, preview: Preview | undefined): [string, Record<string, unknown>] {
  const error =
    preview?.error == null ? null : clip(`${preview.error.name}: ${preview.error.message ?? ''}`, PREVIEW_CHARS);
  const [user, answer] = [clip(preview?.user_text, PREVIEW_CHARS), clip(preview?.answer, PREVIEW_CHARS)];
  const { trace_id, duration_ms, cost_usd, started_at } = trace;
  const [root, agent_id] = [clip(trace.root_span_name, NAME_CHARS), clip(trace.agent_id, NAME_CHARS)];
  const tokens = trace.input_tokens + trace.output_tokens;
  const lines = [
    `- ${trace_id} ${root} · ${agent_id === '' ? '' : `agent ${agent_id} · `}${trace.outcome} · ${duration_ms} ms · ${usd(cost_usd)} · ${tokens} tokens · ${trace.span_count} spans · ${started_at}`,
    ...(error === null ? [] : [`  error: ${error}`]),
    ...(user === '' ? [] : [`  user: ${user}`]),
    ...(answer === '' ? [] : [`  answer: ${answer}`]),
  ];
  const item = { trace_id, root, agent_id, outcome: trace.outcome, duration_ms, cost_usd, tokens, started_at };
  return [lines.join('\n'), { ...item, error, user, answer }];
}

export const searchSpans = defineTool({
  name: 'search_spans',
  title: 'Search spans',
  description:
    'Full-text search over prompts and responses, the best match first (BM25), with the words around the match. Then get_span.',
  routes: ['searchSpans'],
  input: z.object({
    q: z.string().min(1).max(1000).describe('any of the words may match'),
    model: text.optional(),
    outcome: outcome.optional(),
    since: time.default('7d'),
    limit: limit(10, 50),
    max_chars: maxChars(10_000),
  }),
  run: async ({ since, max_chars, ...given }, call) => {
    const query = queryOf({ ...given, since: timeOf(since, call.now), snippets: true });
    const { data } = await call.route('searchSpans', { query });
    const digest = new Digest(SEARCH_BUDGET, max_chars).head(`${data.length} spans, the best match first.`);
    for (const hit of data) {
      const { trace_id, span_id, part, score } = hit;
      const [name, model, snippet] = [clip(hit.name, NAME_CHARS), clip(hit.model, NAME_CHARS), aroundMark(hit)];
      const line = `- ${trace_id} ${span_id} ${name} ${model} · ${hit.outcome} · score ${score.toFixed(2)} · ${part}: ${snippet}`;
      if (!digest.row(line, { trace_id, span_id, name, model, outcome: hit.outcome, score, part, snippet })) break;
    }
    const next =
      digest.rows < data.length
        ? `the answer is full; ask with ${args({ limit: Math.max(1, digest.rows) })} or rarer words`
        : data.length === 0
          ? 'search_spans with other words or an earlier since'
          : null;
    return digest.answer(next);
  },
});

/** Returns the part of a snippet around its first match. */
function aroundMark({ snippet, marks }: SnippetHit): string {
  const [start] = marks[0] ?? [0];
  const from = Math.max(0, Math.min(start - SNIPPET_CHARS / 3, snippet.length - SNIPPET_CHARS));
  return clip(snippet.slice(from).toWellFormed(), SNIPPET_CHARS);
}

export const findFailures = defineTool({
  name: 'find_failures',
  title: 'Find failures',
  description:
    'Groups failing traces by agent, root span and error (incidents): error, count, first and last time, three trace ids.',
  routes: ['listIncidents', 'getIncident'],
  input: z.object({
    since: time.default('24h'),
    agent_id: text.optional(),
    status: z.enum(['open', 'resolved']).optional(),
    limit: limit(10, 50),
    max_chars: maxChars(8000),
  }),
  run: async ({ since, max_chars, ...filters }, call) => {
    const query = queryOf({ ...filters, since: timeOf(since, call.now) });
    const { data } = await call.route('listIncidents', { query });
    const digest = new Digest(FAILURES_BUDGET, max_chars).head(`${data.length} incidents.`);
    for (const { incident_id } of data) {
      const { data: one } = await call.route('getIncident', { params: { incident_id } });
      const { status, severity, trace_count, first_trace_at, last_trace_at } = one;
      const [error, agent_id] = [clip(one.sample, SNIPPET_CHARS), clip(one.agent_id, NAME_CHARS)];
      const root = clip(one.root_span_name, NAME_CHARS);
      const trace_ids = one.trace_ids.slice(0, SHOWN_TRACES);
      const line = `- ${incident_id} ${status} ${severity} · ${trace_count} traces · ${agent_id} ${root} · ${error}\n  ${first_trace_at} to ${last_trace_at} · traces ${trace_ids.join(' ')}`;
      const item = { incident_id, status, severity, trace_count, agent_id, root, error, first_trace_at, last_trace_at };
      if (!digest.row(line, { ...item, trace_ids })) break;
    }
    const next =
      data.length === 0
        ? `single failures open no incident: search_traces ${args({ outcome: 'error', since })}`
        : digest.rows < data.length
          ? `the answer is full; find_failures ${args({ since, limit: Math.max(1, digest.rows) })} or name an agent_id`
          : null;
    return digest.answer(next);
  },
});

export const compareTraces = defineTool({
  name: 'compare_traces',
  title: 'Compare two traces',
  description: 'Shows which fields of a candidate trace differ from a baseline, and where their responses part.',
  routes: ['compareTraces'],
  input: z.object({
    baseline_trace_id: traceId,
    candidate_trace_id: traceId,
    fields: z
      .array(z.string().max(256))
      .max(20)
      .default(['duration_ms', 'cost_usd', 'input_tokens', 'output_tokens', 'outcome', 'response'])
      .describe('also prompt, span_count, judge_score.<judge>'),
    max_chars: maxChars(8000),
  }),
  run: async ({ max_chars, ...body }, call) => {
    const { data } = await call.route('compareTraces', { body });
    const differing = data.fields.filter(({ differs }) => differs);
    const digest = new Digest(COMPARE_BUDGET, max_chars).head(
      `${differing.length} of ${data.fields.length} fields differ.`,
    );
    for (const { field, baseline, candidate, delta_percent, differs } of data.fields) {
      const [before, after] = differs
        ? parted(shown(baseline), shown(candidate))
        : [clip(shown(baseline), PREVIEW_CHARS), ''];
      const percent = delta_percent === null ? '' : ` (${delta_percent.toFixed(1)} %)`;
      const line = differs ? `- ${field}${percent}\n  baseline: ${before}\n  candidate: ${after}` : `- ${field}: same`;
      if (!digest.row(line, { field, differs, baseline: before, candidate: differs ? after : before, delta_percent }))
        break;
    }
    const next = `get_trace ${args({ trace_id: body.candidate_trace_id, view: 'messages' })}`;
    return digest.answer(differing.length === 0 ? null : next);
  },
});

const shown = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
const DIFF_CHARS = 600;
const CONTEXT_CHARS = 60;

/** Returns two texts from a little before the place where they part. */
function parted(a: string, b: string): [string, string] {
  let same = 0;
  while (same < a.length && same < b.length && a.charCodeAt(same) === b.charCodeAt(same)) same += 1;
  const from = Math.max(0, same - CONTEXT_CHARS);
  const part = (text: string): string => `${from > 0 ? '…' : ''}${clip(text.slice(from).toWellFormed(), DIFF_CHARS)}`;
  return [part(a), part(b)];
}
