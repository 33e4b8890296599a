// A trace as the sum of its spans: pure functions over one record, which is also the row of the
// traces table.
import type { MeteredEvent } from '../../stage.ts';
import type { Span, TraceOutcome } from './span.ts';

/** One trace of one organization. Times are milliseconds since the epoch. */
export interface TraceState {
  org_id: string;
  trace_id: string;
  /** started_at as first seen; part of the row's key, so it never changes. */
  anchor: number;
  started_at: number;
  ended_at: number;
  /** started_at of the root; null while the root is missing. */
  root_at: number | null;
  root_span_id: string;
  root_span_name: string;
  agent_id: string;
  outcome: TraceOutcome;
  session_id: string;
  user_id: string;
  tags: string[];
  spans: number;
  input_tokens: number;
  output_tokens: number;
  cost_pico_usd: bigint;
  /** True when any event of the trace was stored in full. */
  sampled: boolean;
  /** log_seq of the first message with an event that forces the trace to be kept; 0 for none. */
  forced_from: number;
  /**
   * True while the lists below hold the values of all spans. A trace that landed before the store
   * had them, or that has too many values, is described by its spans alone, and its lists are empty.
   */
  described: boolean;
  models: string[];
  source_formats: string[];
  departments: string[];
  realms: string[];
  /** Names of registered prompts, and each with its version after a line break. */
  prompts: string[];
  /** True for a trace that began with an event of the past: it is complete at once, and fires nothing. */
  backfilled: boolean;
}

/** Maximum tags of a trace; further ones are stored on their spans only. */
export const TRACE_TAGS_MAX = 200;
/** Maximum values of each list that describes a trace. */
export const TRACE_VALUES_MAX = 50;

const SEVERITY: Record<TraceOutcome, number> = { success: 0, timeout: 1, error: 2 };

/**
 * Returns the trace before its first span is added: anchored at that span, with all counts at zero.
 */
export function emptyTrace(first: Span): TraceState {
  return {
    org_id: first.org_id,
    trace_id: first.trace_id,
    anchor: first.started_at,
    started_at: first.started_at,
    ended_at: first.ended_at,
    root_at: null,
    root_span_id: '',
    root_span_name: '',
    agent_id: '',
    outcome: 'success',
    session_id: '',
    user_id: '',
    tags: [],
    spans: 0,
    input_tokens: 0,
    output_tokens: 0,
    cost_pico_usd: 0n,
    sampled: false,
    forced_from: 0,
    described: true,
    models: [],
    source_formats: [],
    departments: [],
    realms: [],
    prompts: [],
    backfilled: false,
  };
}

/**
 * Adds a span in place. The root is the earliest span without a parent; agent_id is the root's,
 * else the first seen; the outcome is error if any span is error, else timeout if any is, else
 * success; tags and the lists that describe the trace are unions; tokens and cost are sums.
 */
export function addSpan(trace: TraceState, span: Span, sampled: boolean): void {
  trace.started_at = Math.min(trace.started_at, span.started_at);
  trace.ended_at = Math.max(trace.ended_at, span.ended_at);
  trace.spans += 1;
  trace.input_tokens += span.input_tokens;
  trace.output_tokens += span.output_tokens;
  trace.cost_pico_usd += span.cost_pico_usd;
  trace.sampled ||= sampled;
  if (SEVERITY[span.outcome] > SEVERITY[trace.outcome]) trace.outcome = span.outcome;
  if (trace.session_id === '') trace.session_id = span.session_id;
  if (trace.user_id === '') trace.user_id = span.user_id;
  for (const tag of span.tags) {
    if (trace.tags.length < TRACE_TAGS_MAX && !trace.tags.includes(tag)) trace.tags.push(tag);
  }
  const isRoot = span.parent_span_id === '' && (trace.root_at === null || span.started_at < trace.root_at);
  if (isRoot) {
    trace.root_at = span.started_at;
    trace.root_span_id = span.span_id;
    trace.root_span_name = span.name;
  }
  if (span.agent_id !== '' && (isRoot || trace.agent_id === '')) {
    trace.agent_id = span.agent_id;
  }
  if (trace.described) describe(trace, span);
}

/**
 * Adds the spans of an event in place, and subtracts what other records of the same call counted.
 */
export function addEvent(
  trace: TraceState,
  { spans, retain, replaced = [] }: Pick<MeteredEvent, 'spans' | 'retain' | 'replaced'>,
): void {
  for (const span of spans) addSpan(trace, span, retain === 'full');
  for (const { usage } of replaced) {
    trace.input_tokens -= usage.input_tokens;
    trace.output_tokens -= usage.output_tokens;
    trace.cost_pico_usd -= usage.cost_pico_usd;
  }
}

function describe(trace: TraceState, span: Span): void {
  const { prompt_name: prompt } = span;
  const fits = [
    include(trace.models, span.model),
    include(trace.source_formats, span.source_format),
    include(trace.departments, span.department),
    include(trace.realms, span.realm),
    include(trace.prompts, prompt),
    include(trace.prompts, prompt === '' ? '' : `${prompt}\n${span.prompt_version}`),
    !prompt.includes('\n'),
  ].every(Boolean);
  if (fits) return;
  trace.described = false;
  Object.assign(trace, { models: [], source_formats: [], departments: [], realms: [], prompts: [] });
}

/** Adds a value to a list that does not have it. Returns false if the list has no room. */
function include(list: string[], value: string): boolean {
  if (value === '' || list.includes(value)) return true;
  if (list.length >= TRACE_VALUES_MAX) return false;
  list.push(value);
  return true;
}

/** Returns the milliseconds from the first start to the last end. */
export function durationMs(trace: TraceState): number {
  return Math.max(0, trace.ended_at - trace.started_at);
}
