// Returns one trace as a tree of spans or as a timeline: takes rows, returns items in order.
// Irregular traces (no root, a parent that never arrived, two spans with one id) are shown as they
// are.
import { type ClickHouse, isTooLarge } from '../../../sql/client/client.ts';
import { unfoldTexts } from '../../../pipeline/domain/text/text_refs.ts';
import { hasSpanFlag } from '../../../pipeline/domain/traces/span_flags.ts';
import { type SpanTexts, textsOfMessages, withMessages } from '../../../pipeline/domain/conversation/span_messages.ts';
import { readSpanMessages, SPAN_MESSAGES_BYTES_MAX } from '../../../sql/stores/span_messages.ts';
import { readAttributes } from '../../../pipeline/domain/text/attributes.ts';
import { duplicateField, type SpanItem } from '../../http/trace_items.ts';
import { locateInShard, traceNotFound, type TraceReads } from './locate.ts';
import type { Timeline } from './schema.ts';
import { readAllTexts, readSpans, readTexts, readTimeline, type SpanRow, type TraceRange } from './store.ts';

const TREE_SPANS_MAX = 1000;
/**
 * Maximum bytes of the texts of a tree. A larger tree is returned without texts; an export has
 * them.
 */
const TREE_TEXT_BYTES_MAX = 64 * 1024 * 1024;
/**
 * Maximum duration of a trace whose texts are read together with its spans, milliseconds: few rows
 * of other traces lie between.
 */
const NEAR_MS = 300_000;
const TIMELINE_EVENTS_MAX = 10_000;

/** Texts by their position in the ingest log; see placeKey. */
export type TextsByPlace = ReadonlyMap<string, SpanTexts>;

interface Place {
  log_seq: string;
  log_index: number;
  log_sub: number;
}

export const placeKey = ({ log_seq, log_index, log_sub }: Place): string => `${log_seq}:${log_index}:${log_sub}`;

/** Serves GET /v1/traces/{trace_id}/tree. */
export async function readTree(reads: TraceReads, orgId: string, traceId: string, signal: AbortSignal) {
  const range = await locateInShard(reads, orgId, traceId, signal);
  const clickhouse = reads.ofTrace(orgId, traceId);
  const [rows, ahead] = await Promise.all([
    readSpans(clickhouse, { ...range, rows: TREE_SPANS_MAX, counted: true }, { signal }),
    textsAhead(clickhouse, range, signal),
  ]);
  const total = rows[0]?.total ?? 0;
  if (total === 0) throw traceNotFound();
  // Spans that landed between the two reads have their texts in the store by now: texts land before
  // spans.
  const isWhole = ahead !== null && rows.every((row) => !hasTexts(row) || ahead.has(placeKey(row)));
  const texts = isWhole ? ahead : await textsOrNothing(clickhouse, range, rows, signal);
  const children = childrenOf(rows);
  const said =
    texts === null ? new Map<string, SpanTexts>() : await saidOf(clickhouse, range, { rows, texts, total }, signal);
  const spans = rows.map((row) =>
    spanItem(row, shownTexts(row, texts?.get(placeKey(row)), said), children.get(row.span_id) ?? []),
  );
  const root = spans.find((span) => span.parent_span_id === null);
  return {
    data: { trace_id: traceId, root_span_id: root?.span_id ?? null, spans },
    meta: { total, truncated: total > rows.length || texts === null },
  };
}

/** Returns whether a span was sent with texts, as far as its row shows. */
const hasTexts = ({ sampled, kind, flags, attributes }: SpanRow): boolean =>
  sampled &&
  (hasSpanFlag(flags, 'recorded') ? hasSpanFlag(flags, 'has_texts') : kind === 'llm' || attributes.includes('"$ref"'));

/**
 * Returns the texts that log records hold of the spans of a tree. A tree that is whole has the
 * records among its spans.
 */
async function saidOf(
  clickhouse: ClickHouse,
  range: TraceRange,
  { rows, texts, total }: { rows: readonly SpanRow[]; texts: TextsByPlace; total: number },
  signal: AbortSignal,
): Promise<ReadonlyMap<string, SpanTexts>> {
  if (total > rows.length) {
    const asking = rows.filter((row) => row.source_format === 'otlp' && !hasTexts(row));
    return await messagesOf(
      clickhouse,
      range,
      asking.map((row) => row.span_id),
      signal,
    );
  }
  const records = rows.filter((row) => row.sampled && hasSpanFlag(row.flags, 'message_record'));
  records.sort(
    (a, b) => a.started_ms - b.started_ms || Number(a.log_seq) - Number(b.log_seq) || a.log_index - b.log_index,
  );
  return textsOfMessages(
    records.map((row) => ({
      span_id: row.parent_span_id,
      name: row.name,
      ...(texts.get(placeKey(row)) ?? { prompt: '', response: '' }),
    })),
  );
}

/** Returns the texts that log records hold of the given spans of a trace; none where they are too large. */
export async function messagesOf(
  clickhouse: ClickHouse,
  range: TraceRange,
  span_ids: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, SpanTexts>> {
  if (span_ids.length === 0) return new Map();
  try {
    const options = { signal, bytesMax: SPAN_MESSAGES_BYTES_MAX };
    return textsOfMessages(
      await readSpanMessages(clickhouse, { ...range, trace_ids: [range.trace_id], span_ids: [...span_ids] }, options),
    );
  } catch (error) {
    if (isTooLarge(error)) return new Map();
    throw error;
  }
}

/** Returns the texts that a span is shown with: its own, else those that log records hold of it. */
export function shownTexts(
  row: SpanRow,
  own: SpanTexts | undefined,
  said: ReadonlyMap<string, SpanTexts>,
): SpanTexts | undefined {
  const messages = row.sampled ? said.get(row.span_id) : undefined;
  return messages === undefined ? own : withMessages(own ?? { prompt: '', response: '' }, messages);
}

/**
 * Returns all texts of a trace that is short in time and no larger than a tree; null if they have
 * to be read by span.
 */
async function textsAhead(
  clickhouse: ClickHouse,
  range: TraceRange,
  signal: AbortSignal,
): Promise<TextsByPlace | null> {
  if (range.to_ms - range.from_ms > NEAR_MS) return null;
  try {
    const texts = await readAllTexts(
      clickhouse,
      { ...range, rows: TREE_SPANS_MAX + 1 },
      { signal, bytesMax: TREE_TEXT_BYTES_MAX },
    );
    return texts.length > TREE_SPANS_MAX ? null : new Map(texts.map((text) => [placeKey(text), text]));
  } catch (error) {
    if (isTooLarge(error)) return null;
    throw error;
  }
}

async function textsOrNothing(
  clickhouse: ClickHouse,
  range: TraceRange,
  rows: readonly SpanRow[],
  signal: AbortSignal,
): Promise<TextsByPlace | null> {
  try {
    return await textsOf(clickhouse, range, rows, { signal, bytesMax: TREE_TEXT_BYTES_MAX });
  } catch (error) {
    if (isTooLarge(error)) return null;
    throw error;
  }
}

/** Returns the prompts and responses of some spans of a trace. */
export async function textsOf(
  clickhouse: ClickHouse,
  range: TraceRange,
  rows: readonly SpanRow[],
  options: { signal: AbortSignal; bytesMax?: number },
): Promise<TextsByPlace> {
  const full = rows.filter((row) => row.sampled);
  if (full.length === 0) return new Map();
  const texts = await readTexts(
    clickhouse,
    {
      org_id: range.org_id,
      trace_id: range.trace_id,
      times: [...new Set(full.map((row) => clickhouseTime(row.started_at)))],
      seqs: full.map((row) => row.log_seq),
      indexes: full.map((row) => row.log_index),
      subs: full.map((row) => row.log_sub),
    },
    options,
  );
  return new Map(texts.map((text) => [placeKey(text), text]));
}

/**
 * Returns a time such as 2026-01-02T03:04:05.678Z in the form that ClickHouse accepts inside an
 * array.
 */
const clickhouseTime = (iso: string): string => iso.slice(0, 23).replace('T', ' ');

/** Returns the children of each span among the given ones, in their order. */
function childrenOf(rows: readonly SpanRow[]): Map<string, string[]> {
  const children = new Map<string, string[]>();
  for (const { span_id, parent_span_id } of rows) {
    if (parent_span_id === '' || parent_span_id === span_id) continue;
    const siblings = children.get(parent_span_id);
    if (siblings === undefined) children.set(parent_span_id, [span_id]);
    else siblings.push(span_id);
  }
  return children;
}

/**
 * Returns a span as responses show it. LLM spans always have prompt and response; other spans have
 * those that were sent.
 */
export function spanItem(row: SpanRow, texts: SpanTexts | undefined, children: string[]): SpanItem {
  const { prompt = '', response = '' } = texts ?? {};
  const llm = row.kind === 'llm';
  const attributes = unfoldTexts(readAttributes(row.attributes, row.kind), texts?.prompt, texts?.response);
  return {
    span_id: row.span_id,
    parent_span_id: row.parent_span_id === '' ? null : row.parent_span_id,
    event_id: `evt_${row.event_hex}`,
    name: row.name,
    source_format: row.source_format,
    model: row.model,
    outcome: row.outcome,
    duration_ms: row.ended_ms - row.started_ms,
    input_tokens: row.input_tokens,
    output_tokens: row.output_tokens,
    cost_usd: row.cost_usd,
    ...duplicateField(attributes),
    ...(llm || prompt !== '' ? { prompt } : {}),
    ...(llm || response !== '' ? { response } : {}),
    started_at: row.started_at,
    ended_at: row.ended_at,
    attributes,
    tags: row.tags,
    sampled: row.sampled,
    children,
  };
}

type Label = Timeline['tracks'][number]['label'];
const LABELS: readonly Label[] = ['LLM calls', 'Tool calls', 'Events'];

function labelOf(kind: string): Label {
  if (kind === 'llm') return 'LLM calls';
  return kind === 'tool' ? 'Tool calls' : 'Events';
}

/** Serves GET /v1/traces/{trace_id}/timeline. */
export async function readTimelineOf(reads: TraceReads, orgId: string, traceId: string, signal: AbortSignal) {
  const range = await locateInShard(reads, orgId, traceId, signal);
  const rows = await readTimeline(reads.ofTrace(orgId, traceId), { ...range, rows: TIMELINE_EVENTS_MAX }, { signal });
  const [first] = rows;
  if (first === undefined) throw traceNotFound();
  const byLabel = Map.groupBy(rows, (row) => labelOf(row.kind));
  const tracks = LABELS.flatMap((label) => {
    const events = (byLabel.get(label) ?? []).map((row) => ({
      span_id: row.span_id,
      name: row.name,
      start_ms: row.started_ms - first.started_ms,
      end_ms: row.ended_ms - first.started_ms,
      ...(row.model === '' ? {} : { model: row.model }),
      outcome: row.outcome,
    }));
    return events.length === 0 ? [] : [{ label, events }];
  });
  return { data: { trace_id: traceId, tracks }, meta: { total: first.total, truncated: first.total > rows.length } };
}
