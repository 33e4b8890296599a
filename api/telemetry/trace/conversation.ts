// Returns the model calls of a trace as one dialogue, a page at a time. A page reads a bounded
// amount of texts: those of its own calls and tools, and those of the newest calls before it, which
// its calls may continue.
import type { z } from 'zod';
import { callsOf } from '../../../pipeline/domain/conversation/parts.ts';
import { messagesIn } from '../../../pipeline/domain/conversation/messages.ts';
import { stepsOf } from '../../../pipeline/domain/conversation/steps.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import type { conversationMeta, Conversation } from './conversation_schema.ts';
import { choosePage, cursorAfter, type PlacedRow, placedRows } from './conversation_page.ts';
import { type PageCall, stepItem } from './conversation_items.ts';
import { traceNotFound, type TraceDeps } from './deps.ts';
import { OUTLINE_SPANS_MAX } from './schema.ts';
import {
  type CallDetails,
  placeKey,
  readCallDetails,
  readCalls,
  readCallTexts,
  readParents,
  type TraceRange,
} from './store.ts';
import { textStatesOf } from './text_state.ts';

/** Maximum model calls and tools of a trace that are looked at. */
const CALLS_MAX = 20_000;
/** Maximum bytes of texts that one read returns; above what a page chooses, as JSON escapes characters. */
const READ_BYTES_MAX = 128 * 1024 * 1024;
const ERROR_CHARS_MAX = 500;

interface ConversationPage {
  data: Conversation;
  meta: z.infer<typeof conversationMeta>;
}

/** Serves GET /v1/traces/{trace_id}/conversation. */
export async function readConversation(
  deps: TraceDeps,
  orgId: string,
  asked: { trace_id: string; cursor: string | undefined },
  signal: AbortSignal,
): Promise<ConversationPage> {
  const range = await deps.locate(orgId, asked.trace_id, signal);
  const [rows, [family]] = await Promise.all([
    readCalls(deps.clickhouse, { ...range, rows: CALLS_MAX }, { signal }),
    readParents(deps.clickhouse, { ...range, rows: OUTLINE_SPANS_MAX }, { signal }),
  ]);
  if (family === undefined || family.span_id.length === 0) throw traceNotFound();
  const placed = placedRows(rows, family);
  const page = choosePage(placed, asked.cursor);
  const read = await readRows(deps.clickhouse, range, [...page.before, ...page.calls, ...page.tools], signal);
  const calls = await pageCalls(deps, orgId, page.calls, read, signal);
  const steps = stepsOf({
    calls,
    before: page.before.map((row) => modelCall(row, read)),
    tools: page.tools.map((row) => toolRun(row, read)),
  });
  return {
    data: {
      trace_id: asked.trace_id,
      steps: steps.flatMap((step, index) => {
        const call = calls[index];
        return call === undefined ? [] : [stepItem(call, step, read.outcomes)];
      }),
    },
    meta: { total: page.total, next_cursor: page.more ? cursorAfter(page.calls) : null },
  };
}

interface Read {
  details: ReadonlyMap<string, CallDetails>;
  texts: ReadonlyMap<string, { prompt: string; response: string }>;
  /** Outcomes by number of the span. */
  outcomes: ReadonlyMap<number, CallDetails['outcome']>;
}

async function readRows(
  clickhouse: ClickHouse,
  range: TraceRange,
  rows: readonly PlacedRow[],
  signal: AbortSignal,
): Promise<Read> {
  if (rows.length === 0) return { details: new Map(), texts: new Map(), outcomes: new Map() };
  const placesOf = (wanted: readonly PlacedRow[]) => ({
    org_id: range.org_id,
    trace_id: range.trace_id,
    times: [...new Set(wanted.map(({ started_at }) => started_at.slice(0, 23).replace('T', ' ')))],
    seqs: wanted.map(({ log_seq }) => log_seq),
    indexes: wanted.map(({ log_index }) => log_index),
    subs: wanted.map(({ log_sub }) => log_sub),
  });
  const withTexts = rows.filter(({ bytes, omitted }) => bytes > 0 && !omitted);
  const [details, texts] = await Promise.all([
    readCallDetails(clickhouse, { ...placesOf(rows), chars: ERROR_CHARS_MAX }, { signal }),
    withTexts.length === 0 ? [] : readCallTexts(clickhouse, placesOf(withTexts), { signal, bytesMax: READ_BYTES_MAX }),
  ]);
  const byPlace = new Map(details.map((row) => [placeKey(row), row]));
  return {
    details: byPlace,
    texts: new Map(texts.map((row) => [placeKey(row), row])),
    outcomes: new Map(
      rows.flatMap((row) => {
        const found = byPlace.get(placeKey(row));
        return found === undefined ? [] : [[row.span, found.outcome] as const];
      }),
    ),
  };
}

function modelCall(row: PlacedRow, { details, texts }: Read) {
  const key = placeKey(row);
  const text = texts.get(key);
  return {
    span: row.span,
    span_id: row.span_id,
    ancestors: row.ancestors,
    started_ms: row.started_ms,
    messages: messagesIn(text?.prompt ?? ''),
    response: text?.response ?? '',
    tool_calls: callsOf(parsed(details.get(key)?.tool_calls ?? '')),
  };
}

function toolRun(row: PlacedRow, { details, texts }: Read) {
  const key = placeKey(row);
  const [detail, text] = [details.get(key), texts.get(key)];
  return {
    span: row.span,
    ancestors: row.ancestors,
    span_id: row.span_id,
    started_ms: row.started_ms,
    name: detail?.name ?? '',
    call_id: detail?.call_id ?? '',
    input: text?.prompt ?? '',
    output: text?.response ?? '',
  };
}

function parsed(json: string): unknown {
  try {
    return json === '' ? null : JSON.parse(json);
  } catch {
    // Older rows may hold text that is not JSON.
    return null;
  }
}

async function pageCalls(
  deps: TraceDeps,
  orgId: string,
  rows: readonly PlacedRow[],
  read: Read,
  signal: AbortSignal,
): Promise<PageCall[]> {
  const states = await textStatesOf(
    deps.clickhouse,
    orgId,
    rows.map((row) => ({
      started_at: row.started_at,
      sampled: row.sampled,
      here: row.bytes > 0,
      flags: row.flags,
      assumed: true,
    })),
    signal,
  );
  return rows.flatMap((row, index) => {
    const detail = read.details.get(placeKey(row));
    return detail === undefined
      ? []
      : [{ ...modelCall(row, read), row, detail, text_state: states[index]?.state ?? ('none' as const) }];
  });
}
