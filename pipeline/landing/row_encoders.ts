// Records to wire rows: one JSONCompactEachRow line each, columns in the order of tables.ts.
// Pure; what a row needs that is not in its record (its place in the log, the org's retention) comes as arguments.
import { documentTerms } from '../domain/text/text_terms.ts';
import { picoToDecimal } from '../domain/pricing/money.ts';
import type { Span } from '../domain/traces/span.ts';
import { foldTexts } from '../domain/text/text_refs.ts';
import type { TraceState } from '../domain/traces/trace_state.ts';
import type { LogPosition, Usage } from '../stage.ts';
import type { Judgement } from '../judging/rule_judges.ts';

const DAY_MS = 86_400_000;
const MICROS_PER_SECOND = 1_000_000n;
/** Last day that a Date column holds (2149-06-06), in days since the epoch. */
const DATE_MAX_DAYS = 65_535;
/** drop_on is rounded up to a multiple of this many days when retention is long, so that one insert makes few parts. */
const RETENTION_CLASSES_DAYS = [1, 3, 7, 14, 30, 60, 90, 180, 365, 730, 1825, 3650];

/** Retention days of texts, rounded up to a small set of classes: a stamp may be late, never early. */
export function retentionClassDays(days: number): number {
  return RETENTION_CLASSES_DAYS.find((known) => known >= days) ?? days;
}

/**
 * The day that is stamped on a text, in days since the epoch: it chooses the partition, and nothing else (ops/adr/0022), so it may be late.
 * Texts that are due when they land already, as when years of events are brought in at once, share the partition of the day they came: one
 * for each week of their past would be a thousand small parts with an index each.
 */
export function dropDay(
  { started_at, received_at }: Pick<Span, 'started_at' | 'received_at'>,
  retentionDays: number,
): number {
  const due = Math.floor(started_at / DAY_MS) + retentionClassDays(retentionDays);
  return Math.min(DATE_MAX_DAYS, Math.max(0, due, Math.floor(received_at / DAY_MS)));
}

export function spanLine(span: Span, position: LogPosition, sub: number, sampled: boolean): string {
  const { price } = span;
  return JSON.stringify([
    span.org_id,
    span.started_at,
    span.ended_at,
    span.received_at,
    span.trace_id,
    span.span_id,
    span.parent_span_id,
    span.event_hex,
    span.kind,
    span.name,
    span.model,
    span.source_format,
    span.outcome,
    span.agent_id,
    span.department,
    span.realm,
    span.session_id,
    span.user_id,
    span.tags,
    span.input_tokens,
    span.output_tokens,
    span.cached_input_tokens,
    picoToDecimal(span.cost_pico_usd),
    price.source,
    price.input_usd_per_mtok,
    price.output_usd_per_mtok,
    price.cached_input_usd_per_mtok,
    span.storage_bytes,
    span.sandbox_seconds.toFixed(6),
    sampled ? JSON.stringify(foldTexts(span.attributes, span.prompt, span.response)) : '{}',
    sampled,
    position.partition,
    position.log_seq,
    position.log_index,
    sub,
  ]);
}

/** The row of a span's texts, or null where it has none. */
export function textLine(span: Span, position: LogPosition, sub: number, retentionDays: number): string | null {
  if (span.prompt === '' && span.response === '') return null;
  const terms = documentTerms(span.prompt, span.response);
  return JSON.stringify([
    span.org_id,
    span.started_at,
    span.trace_id,
    span.span_id,
    span.event_hex,
    span.model,
    span.outcome,
    picoToDecimal(span.cost_pico_usd),
    span.prompt,
    span.response,
    terms.extra_words,
    terms.dl,
    terms.reps,
    terms.stop_reps,
    dropDay(span, retentionDays),
    position.partition,
    position.log_seq,
    position.log_index,
    sub,
  ]);
}

/** A trace's row without its sign: the two rows of a pair differ in nothing else. */
export function traceCells(trace: TraceState, partition: number, version: number): string {
  return JSON.stringify([
    trace.org_id,
    trace.anchor,
    trace.trace_id,
    trace.started_at,
    trace.ended_at,
    trace.root_at,
    trace.root_span_id,
    trace.root_span_name,
    trace.agent_id,
    trace.outcome,
    trace.session_id,
    trace.user_id,
    trace.tags,
    trace.spans,
    trace.input_tokens,
    trace.output_tokens,
    picoToDecimal(trace.cost_pico_usd),
    trace.sampled,
    trace.forced_from,
    partition,
    version,
  ]).slice(0, -1);
}

export function traceLine(cells: string, sign: 1 | -1): string {
  return `${cells},${String(sign)}]`;
}

export function usageLine(usage: Usage, partition: number, logSeq: number): string {
  return JSON.stringify([
    usage.org_id,
    usage.hour,
    usage.day,
    usage.agent_id,
    usage.model,
    usage.department,
    usage.realm,
    usage.last_received_at,
    usage.events,
    usage.input_tokens,
    usage.output_tokens,
    usage.storage_bytes,
    microsToDecimal(usage.sandbox_micros),
    picoToDecimal(usage.cost_pico_usd),
    [...usage.outcomes.keys()],
    [...usage.outcomes.values()].map(picoToDecimal),
    String(usage.correction),
    partition,
    logSeq,
  ]);
}

/** What rules have said of a trace; none is no row. `version` is the trace's newest message. */
export function scoresLine(
  trace: TraceState,
  judgements: readonly Judgement[],
  { partition, version, scored_at }: { partition: number; version: number; scored_at: number },
): string {
  return JSON.stringify([
    trace.org_id,
    judgements.map(({ judge_id }) => judge_id),
    trace.trace_id,
    judgements.map(({ judge_version }) => judge_version),
    judgements.map(({ judge_name }) => judge_name),
    trace.agent_id,
    trace.started_at,
    judgements.map(({ score }) => score),
    judgements.map(({ verdict }) => verdict),
    judgements.map(({ reason }) => reason),
    scored_at,
    partition,
    version,
  ]);
}

function microsToDecimal(micros: bigint): string {
  return `${String(micros / MICROS_PER_SECOND)}.${String(micros % MICROS_PER_SECOND).padStart(6, '0')}`;
}
