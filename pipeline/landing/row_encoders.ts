// Encodes records as wire rows: cells, or the JSONCompactEachRow line of scores, with the columns in the order
// of sql/stores/landing_tables.ts. Pure functions: what a row needs beside its record (its log position, the
// organization's retention) is an argument.
import type { Cells } from '../../sql/client/native_block.ts';
import { errorTextOf, namesError } from '../domain/incidents/error_text.ts';
import { documentTerms } from '../domain/text/text_terms.ts';
import type { Span } from '../domain/traces/span.ts';
import { SPAN_FLAGS, type SpanFlag } from '../domain/traces/span_flags.ts';
import { foldTexts } from '../domain/text/text_refs.ts';
import type { TraceState } from '../domain/traces/trace_state.ts';
import type { LogPosition, Usage } from '../stage.ts';
import type { Judgement } from '../judging/rule_judges.ts';

const DAY_MS = 86_400_000;
/** Last day that a Date column holds (2149-06-06), in days since the epoch. */
const DATE_MAX_DAYS = 65_535;
/**
 * Retention periods of texts in days. Longer ones are rounded up to one of these, so that one
 * insert makes few parts.
 */
const RETENTION_CLASSES_DAYS = [1, 3, 7, 14, 30, 60, 90, 180, 365, 730, 1825, 3650];

/**
 * Returns the retention of texts in days, rounded up to one of a few classes, so that a text may be
 * dropped late but never early.
 */
export function retentionClassDays(days: number): number {
  return RETENTION_CLASSES_DAYS.find((known) => known >= days) ?? days;
}

/**
 * Returns the day on which a text may be dropped, in days since the epoch. It only chooses the
 * partition (ops/adr/0022), so it may be late. A text that is due when it lands, as in an import of
 * years of events, goes to the partition of the day on which it was received: one partition for
 * each past week would be a thousand small parts with an index each.
 */
export function dropDay(
  { started_at, received_at }: Pick<Span, 'started_at' | 'received_at'>,
  retentionDays: number,
): number {
  const due = Math.floor(started_at / DAY_MS) + retentionClassDays(retentionDays);
  return Math.min(DATE_MAX_DAYS, Math.max(0, due, Math.floor(received_at / DAY_MS)));
}

export function spanCells(span: Span, position: LogPosition, sub: number, sampled: boolean): Cells {
  const { price } = span;
  return [
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
    span.provider,
    span.source_format,
    span.outcome,
    span.agent_id,
    span.department,
    span.realm,
    span.environment,
    span.service,
    span.release,
    span.prompt_name,
    span.prompt_version,
    span.session_id,
    span.user_id,
    span.tags,
    span.input_tokens,
    span.output_tokens,
    span.cached_input_tokens,
    span.first_token_ms,
    span.cache_write_tokens,
    span.reasoning_tokens,
    span.cost_pico_usd,
    price.source,
    price.input_usd_per_mtok,
    price.output_usd_per_mtok,
    price.cached_input_usd_per_mtok,
    span.storage_bytes,
    microsOf(span.sandbox_seconds),
    sampled ? JSON.stringify(foldTexts(span.attributes, span.prompt, span.response)) : summaryAttributes(span),
    span.outcome !== 'success' && namesError(span.attributes),
    sampled,
    flagsOf(span, sampled),
    position.partition,
    position.log_seq,
    position.log_index,
    sub,
  ];
}

/** Returns the bits of SPAN_FLAGS that hold for a span. */
function flagsOf(span: Span, sampled: boolean): number {
  const { attributes } = span;
  const bit = (flag: SpanFlag, holds: boolean): number => (holds ? SPAN_FLAGS[flag] : 0);
  const hasTexts = span.prompt !== '' || span.response !== '';
  return (
    SPAN_FLAGS.recorded |
    bit('has_texts', hasTexts && sampled) |
    bit('texts_sampled_out', hasTexts && !sampled) |
    bit('usage_estimated', attributes['tokens_estimated'] === true) |
    bit('price_missing', attributes['price_missing'] === true) |
    bit('judge_call', attributes['judge_call'] === true) |
    bit('replay', typeof attributes['replay_of'] === 'string') |
    bit('dataset_run', typeof attributes['dataset_run'] === 'string') |
    bit('prompt_truncated', attributes['prompt_truncated'] === true) |
    bit('redacted', span.redacted !== undefined && span.redacted.length > 0) |
    bit('times_estimated', attributes['times_estimated'] === true) |
    bit('message_record', span.record === 'message') |
    bit('line_record', span.record === 'line') |
    bit('duplicate', span.duplicate_of !== undefined) |
    bit('replaces', span.replaces !== undefined)
  );
}

/** Returns what a summary row keeps of the attributes: which span counts the call, which the service found. */
function summaryAttributes({ duplicate_of, replaces }: Span): string {
  if (replaces !== undefined) return JSON.stringify({ replaces });
  return duplicate_of === undefined ? '{}' : JSON.stringify({ duplicate_of });
}

/** Returns the row of a span's texts, or null if it has none. */
export function textCells(span: Span, position: LogPosition, sub: number, retentionDays: number): Cells | null {
  if (span.prompt === '' && span.response === '') return null;
  const terms = documentTerms(span.prompt, span.response);
  return [
    span.org_id,
    span.started_at,
    span.trace_id,
    span.span_id,
    span.event_hex,
    span.name,
    span.model,
    span.outcome,
    span.cost_pico_usd,
    flagsOf(span, true),
    span.prompt,
    span.response,
    span.outcome === 'success' ? '' : errorTextOf(span.response),
    terms.words,
    terms.dl,
    dropDay(span, retentionDays),
    position.partition,
    position.log_seq,
    position.log_index,
    sub,
  ];
}

/** A trace's row without its sign, which is the only difference between the two rows of a pair. */
export type TraceCells = Cells;

/** Returns the row of a trace as it is now: it shares nothing with the record, whose lists grow. */
export function traceCells(trace: TraceState, partition: number, version: number): TraceCells {
  return [
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
    copied(trace.tags),
    trace.spans,
    trace.input_tokens,
    trace.output_tokens,
    trace.cost_pico_usd,
    trace.sampled,
    trace.forced_from,
    trace.described,
    copied(trace.models),
    copied(trace.source_formats),
    copied(trace.departments),
    copied(trace.realms),
    copied(trace.prompts),
    trace.backfilled,
    partition,
    version,
  ];
}

const NONE: readonly string[] = [];
const copied = (list: readonly string[]): readonly string[] => (list.length === 0 ? NONE : list.slice());

export const signedTrace = (cells: TraceCells, sign: 1 | -1): Cells => [...cells, sign];

export function usageCells(usage: Usage, partition: number, logSeq: number): Cells {
  return [
    usage.org_id,
    Math.floor(usage.hour / 1000),
    usage.day,
    usage.agent_id,
    usage.key_id,
    usage.model,
    usage.department,
    usage.realm,
    usage.last_received_at,
    usage.events,
    unsigned(usage.input_tokens),
    unsigned(usage.output_tokens),
    usage.storage_bytes,
    usage.sandbox_micros,
    usage.cost_pico_usd,
    [...usage.outcomes.keys()],
    [...usage.outcomes.values()],
    hexOf(usage.correction),
    partition,
    logSeq,
  ];
}

/**
 * Returns a count for a column of unsigned integers. A cancelled count is negative; sums of the store
 * wrap at 2^64, so it is subtracted from them.
 */
const unsigned = (count: number): number | string => (count < 0 ? hexOf(BigInt(count)) : count);

/** Returns the low 64 bits of a number as 16 hexadecimal digits. */
const hexOf = (value: bigint): string => BigInt.asUintN(64, value).toString(16).padStart(16, '0');

/**
 * Returns one wire row with all scores that rules gave a trace. `version` is the log_seq of the
 * trace's newest message.
 */
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

/** Returns seconds as whole microseconds. */
function microsOf(seconds: number): bigint {
  return seconds === 0 ? 0n : BigInt(seconds.toFixed(6).replace('.', ''));
}
