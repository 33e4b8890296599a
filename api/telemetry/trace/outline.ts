// Returns the outline of a trace: every span in columns, depth first, without texts and attributes.
// It makes no object for each span, because a trace may have 50,000. Irregular traces (no root, a
// parent that never arrived, two spans with one id, a circle of parents) are shown as they are.
import type { ClickHouse } from '../../../sql/client/client.ts';
import type { ScoreItem } from '../../http/trace_items.ts';
import { type CompleteRule, isComplete } from './complete.ts';
import { OUTLINE_ERRORS_MAX, OUTLINE_SPANS_MAX, type Outline } from './schema.ts';
import {
  type OutlineRow,
  placeKey,
  readFailures,
  readFailureTexts,
  readOutline,
  readUnflagged,
  type TraceRange,
} from './store.ts';
import { depthFirst, parentsOf } from './order.ts';
import { type FoundItem, locateTraceItem } from './trace_item.ts';
import { traceNotFound, type TraceDeps } from './deps.ts';

/** Maximum characters of an error message. */
const MESSAGE_CHARS_MAX = 500;

/** Serves GET /v1/traces/{trace_id}/outline. */
export async function readTraceOutline(deps: TraceDeps, orgId: string, traceId: string, signal: AbortSignal) {
  const { clickhouse } = deps;
  // Scores need no range, so they are read while the trace is located.
  const [{ range, row, item, failures }, scores] = await Promise.all([
    locateTraceItem(deps, orgId, traceId, signal).then((located) => readSpans(clickhouse, located, signal)),
    deps.scoresOf(orgId, traceId, signal),
  ]);
  if (row === undefined || row.total === 0) throw traceNotFound();
  if (row.unflagged > 0) await fillFlags(clickhouse, range, row, signal);
  return {
    data: outlineOf(row, { item, failures, scores, rule: deps.completeRule, now: deps.now() }, traceId),
    meta: { total: row.total, truncated: row.total > row.span_id.length },
  };
}

/**
 * Reads what the range of a trace holds. Failures are read only if the trace has some: beside the spans if its row says so,
 * and after them if only they do, because the row is older or has not landed.
 */
async function readSpans(
  clickhouse: ClickHouse,
  { range, found }: { range: TraceRange; found: FoundItem | null },
  signal: AbortSignal,
) {
  const spans = readOutline(clickhouse, { ...range, rows: OUTLINE_SPANS_MAX }, { signal });
  if (found !== null && found.item.outcome !== 'success') {
    const [[row], failures] = await Promise.all([spans, failuresOf(clickhouse, range, signal)]);
    return { range, row, item: found, failures };
  }
  const [row] = await spans;
  const hasFailed = row?.outcome.some((outcome) => outcome !== 'success') === true;
  return { range, row, item: found, failures: hasFailed ? await failuresOf(clickhouse, range, signal) : [] };
}

/** Fills in the flags and times to the first token of spans that landed before these were columns. */
async function fillFlags(
  clickhouse: ClickHouse,
  range: TraceRange,
  row: OutlineRow,
  signal: AbortSignal,
): Promise<void> {
  const rows = await readUnflagged(clickhouse, { ...range, rows: OUTLINE_SPANS_MAX }, { signal });
  const known = new Map(rows.map((found) => [`${found.started_ms} ${found.span_id}`, found]));
  for (const [span, flags] of row.flags.entries()) {
    const found = flags === 0 ? known.get(keyOf(row, span)) : undefined;
    if (found === undefined) continue;
    row.flags[span] = found.bits;
    row.first_token_ms[span] = found.first_token;
  }
}

const keyOf = ({ started_ms, span_id }: OutlineRow, span: number): string =>
  `${started_ms[span] ?? 0} ${span_id[span] ?? ''}`;

interface Failure {
  span_id: string;
  started_ms: number;
  message: string;
}

/** Reads failures beside the texts of failed spans, which say what went wrong where attributes do not. */
async function failuresOf(clickhouse: ClickHouse, range: TraceRange, signal: AbortSignal): Promise<Failure[]> {
  const params = { ...range, rows: OUTLINE_ERRORS_MAX, chars: MESSAGE_CHARS_MAX };
  const [failures, texts] = await Promise.all([
    readFailures(clickhouse, params, { signal }),
    readFailureTexts(clickhouse, params, { signal }),
  ]);
  const messages = new Map(texts.map((text) => [placeKey(text), text.message]));
  return failures.map((failure) => ({
    ...failure,
    message: failure.message === '' ? (messages.get(placeKey(failure)) ?? '') : failure.message,
  }));
}

interface Besides {
  item: FoundItem | null;
  failures: readonly Failure[];
  scores: ScoreItem[];
  rule: CompleteRule;
  now: number;
}

function outlineOf(row: OutlineRow, { item, failures, scores, rule, now }: Besides, traceId: string): Outline {
  const parents = parentsOf(row.span_id, row.parent_span_id);
  const order = depthFirst(parents);
  const place = new Int32Array(order.length);
  for (const [at, span] of order.entries()) place[span] = at;
  const [names, models] = [new Dictionary(), new Dictionary()];
  const trace = item?.item ?? itemFromSpans(row, traceId);
  const startedMs = Date.parse(trace.started_at);
  const pick = <T>(column: readonly T[]): T[] => Array.from(order, (span) => column[span] as T);
  const spans = {
    span_id: pick(row.span_id),
    parent: Array.from(order, (span) => placeOf(place, parents[span] ?? -1)),
    name: Array.from(order, (span) => names.indexOf(row.name[span] ?? '')),
    kind: pick(row.kind),
    model: Array.from(order, (span) => (row.model[span] === '' ? -1 : models.indexOf(row.model[span] ?? ''))),
    outcome: pick(row.outcome),
    start_ms: Array.from(order, (span) => (row.started_ms[span] ?? 0) - startedMs),
    duration_ms: Array.from(order, (span) => (row.ended_ms[span] ?? 0) - (row.started_ms[span] ?? 0)),
    first_token_ms: Array.from(order, (span) => row.first_token_ms[span] || -1),
    input_tokens: pick(row.input_tokens),
    output_tokens: pick(row.output_tokens),
    cost_usd: pick(row.cost_usd),
    flags: pick(row.flags),
  };
  return {
    trace,
    complete: isComplete({ received_ms: row.received_ms, rooted: row.parent_span_id.includes('') }, rule, now),
    sampled: item?.sampled ?? true,
    names: names.values,
    models: models.values,
    errors: errorsOf(row, place, failures),
    scores,
    spans,
  };
}

const placeOf = (place: Int32Array, span: number): number => (span === -1 ? -1 : (place[span] ?? -1));

/** Returns the failures with the indexes of their spans; a failed span beyond the outline is left out. */
function errorsOf(row: OutlineRow, place: Int32Array, failures: readonly Failure[]): Outline['errors'] {
  const wanted = new Map(failures.map(({ span_id, started_ms, message }) => [`${started_ms} ${span_id}`, message]));
  if (wanted.size === 0) return [];
  const found = new Map<string, number>();
  for (const [span, outcome] of row.outcome.entries()) {
    if (outcome === 'success') continue;
    const key = keyOf(row, span);
    if (wanted.has(key) && !found.has(key)) found.set(key, span);
  }
  return [...wanted].flatMap(([key, message]) => {
    const span = found.get(key);
    return span === undefined ? [] : [{ i: place[span] ?? 0, message }];
  });
}

/** Texts by index, each once. */
class Dictionary {
  readonly values: string[] = [];
  readonly #indexes = new Map<string, number>();

  indexOf(text: string): number {
    const known = this.#indexes.get(text);
    if (known !== undefined) return known;
    this.#indexes.set(text, this.values.length);
    return this.values.push(text) - 1;
  }
}

/** Returns the trace as its spans add up, for the moment in which its own row has not landed yet. */
function itemFromSpans(row: OutlineRow, trace_id: string): Outline['trace'] {
  const startedMs = row.started_ms.reduce((least, ms) => Math.min(least, ms), Infinity);
  const endedMs = row.ended_ms.reduce((most, ms) => Math.max(most, ms), 0);
  const sum = (column: readonly number[]): number => column.reduce((total, value) => total + value, 0);
  const root = row.parent_span_id.indexOf('');
  return {
    trace_id,
    root_span_name: root === -1 ? null : (row.name[root] ?? null),
    agent_id: null,
    outcome: row.outcome.includes('error') ? 'error' : row.outcome.includes('timeout') ? 'timeout' : 'success',
    duration_ms: Math.max(0, endedMs - startedMs),
    input_tokens: sum(row.input_tokens),
    output_tokens: sum(row.output_tokens),
    cost_usd: sum(row.cost_usd),
    started_at: new Date(startedMs).toISOString(),
    ended_at: new Date(endedMs).toISOString(),
    tags: [],
    span_count: row.total,
    session_id: null,
    user_id: null,
  };
}
