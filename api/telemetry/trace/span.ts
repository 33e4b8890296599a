// Returns one span of a trace with everything that is stored of it: its texts up to a bound, its
// events, links and scores, and where its texts are if they are not in the store.
import { firstTokenMs, labelsOf } from '../../../pipeline/domain/decode/labels.ts';
import { readAttributes } from '../../../pipeline/domain/text/attributes.ts';
import { unfoldTexts } from '../../../pipeline/domain/text/text_refs.ts';
import { type SpanTexts, textsOfMessages, withMessages } from '../../../pipeline/domain/conversation/span_messages.ts';
import { hasSpanFlag } from '../../../pipeline/domain/traces/span_flags.ts';
import { isTooLarge } from '../../../sql/client/client.ts';
import { readSpanMessages, SPAN_MESSAGES_BYTES_MAX } from '../../../sql/stores/span_messages.ts';
import { ApiError } from '../../http/errors.ts';
import { duplicateField } from '../../http/trace_items.ts';
import type { TraceDeps } from './deps.ts';
import { eventsOf, linksOf } from './otel.ts';
import { SPAN_TEXT_CHARS_MAX, type SpanDetail } from './schema.ts';
import { readChildIds, readSpan, readSpanTexts, type SpanRow, type TraceRange } from './store.ts';
import { textStatesOf, type TextWhereabouts } from './text_state.ts';

/** Maximum children that a span is returned with. */
export const CHILDREN_MAX = 1000;

interface Texts {
  prompt: string;
  response: string;
  prompt_chars: number;
  response_chars: number;
}
const NO_TEXTS: Texts = { prompt: '', response: '', prompt_chars: 0, response_chars: 0 };

/** Serves GET /v1/traces/{trace_id}/spans/{span_id}. */
export async function readSpanDetail(
  deps: TraceDeps,
  orgId: string,
  asked: { trace_id: string; span_id: string },
  signal: AbortSignal,
): Promise<{ data: SpanDetail }> {
  const { clickhouse } = deps;
  // Scores need no range, so they are read while the trace is located.
  const [{ range, row, children, texts }, scores] = await Promise.all([
    deps.locate(orgId, asked.trace_id, signal).then((found) => readStored(deps, found, asked.span_id, signal)),
    deps.scoresOf(orgId, asked.trace_id, signal),
  ]);
  const said = await saidOf(deps, range, row, children, signal);
  const facts = {
    started_at: row.started_at,
    sampled: row.sampled,
    here: texts !== null || said !== null,
    flags: row.flags,
    assumed: row.kind === 'llm' || row.attributes.includes('"$ref"'),
  };
  const [whereabouts = { state: 'none' as const, left_on: null }] = await textStatesOf(
    clickhouse,
    orgId,
    [facts],
    signal,
  );
  return {
    data: detailOf(row, withSaid(texts ?? NO_TEXTS, said), whereabouts, {
      children: children.map(({ span_id }) => span_id),
      scores: scores.filter(({ span_id }) => span_id === null || span_id === asked.span_id),
    }),
  };
}

/** Reads a span, its texts and its children. The texts are read as soon as the span names their place. */
async function readStored(deps: TraceDeps, range: TraceRange, span_id: string, signal: AbortSignal) {
  const { clickhouse } = deps;
  const ofSpan = async () => {
    const row = await findSpan(deps, range, span_id, signal);
    const place = { ...placeOf(range, row), chars: SPAN_TEXT_CHARS_MAX };
    const [texts = null] = await readSpanTexts(clickhouse, place, { signal });
    return { row, texts };
  };
  const [{ row, texts }, children] = await Promise.all([
    ofSpan(),
    readChildIds(clickhouse, { ...range, span_id, rows: CHILDREN_MAX }, { signal }),
  ]);
  return { range, row, texts, children };
}

/** Returns the texts that log records hold of a span; null where none do. */
export async function saidOf(
  { clickhouse }: Pick<TraceDeps, 'clickhouse'>,
  range: TraceRange,
  row: SpanRow,
  children: readonly { flags: number }[],
  signal: AbortSignal,
): Promise<SpanTexts | null> {
  if (!row.sampled || !children.some(({ flags }) => hasSpanFlag(flags, 'message_record'))) return null;
  const options = { signal, bytesMax: SPAN_MESSAGES_BYTES_MAX };
  try {
    const messages = await readSpanMessages(
      clickhouse,
      { ...range, trace_ids: [range.trace_id], span_ids: [row.span_id] },
      options,
    );
    return textsOfMessages(messages).get(row.span_id) ?? null;
  } catch (error) {
    if (isTooLarge(error)) return null;
    throw error;
  }
}

/** Returns a span's own texts, with those that log records hold of it where it has none, cut alike. */
function withSaid(own: Texts, said: SpanTexts | null): Texts {
  if (said === null) return own;
  const { prompt, response } = withMessages(own, said);
  return {
    prompt: own.prompt === '' ? firstChars(prompt) : prompt,
    response: own.response === '' ? firstChars(response) : response,
    prompt_chars: own.prompt === '' ? charsOf(prompt) : own.prompt_chars,
    response_chars: own.response === '' ? charsOf(response) : own.response_chars,
  };
}

/** Counts characters as the store does: code points. */
const charsOf = (text: string): number => Array.from(text).length;
const firstChars = (text: string): string =>
  text.length <= SPAN_TEXT_CHARS_MAX
    ? text
    : Array.from(text.slice(0, 2 * SPAN_TEXT_CHARS_MAX))
        .slice(0, SPAN_TEXT_CHARS_MAX)
        .join('');

/** @throws ApiError span_not_found */
export async function findSpan(
  { clickhouse }: Pick<TraceDeps, 'clickhouse'>,
  range: TraceRange,
  span_id: string,
  signal: AbortSignal,
): Promise<SpanRow> {
  const [row] = await readSpan(clickhouse, { ...range, span_id }, { signal });
  if (row === undefined) throw new ApiError('span_not_found', 'The trace has no span with this id.');
  return row;
}

/** Returns where the texts of a span are, for the queries that read them. */
export function placeOf({ org_id, trace_id }: TraceRange, { started_ms, log_seq, log_index, log_sub }: SpanRow) {
  return { org_id, trace_id, started_ms, log_seq, log_index, log_sub };
}

function detailOf(
  row: SpanRow,
  texts: Texts,
  { state, left_on }: TextWhereabouts,
  besides: Pick<SpanDetail, 'children' | 'scores'>,
): SpanDetail {
  const stored = readAttributes(row.attributes, row.kind);
  const isCut = {
    prompt: texts.prompt_chars > SPAN_TEXT_CHARS_MAX,
    response: texts.response_chars > SPAN_TEXT_CHARS_MAX,
  };
  const attributes = unfoldTexts(
    stored,
    isCut.prompt ? undefined : texts.prompt,
    isCut.response ? undefined : texts.response,
  );
  // Rows that landed before these were columns have them in their attributes.
  const labels =
    row.flags === 0 ? { ...labelsOf(stored, undefined), first_token_ms: firstTokenMs(stored, row.started_ms) } : row;
  const isCall = row.kind === 'llm';
  return {
    span_id: row.span_id,
    parent_span_id: row.parent_span_id === '' ? null : row.parent_span_id,
    event_id: `evt_${row.event_hex}`,
    name: row.name,
    kind: row.kind,
    source_format: row.source_format,
    model: row.model,
    agent_id: row.agent_id === '' ? null : row.agent_id,
    outcome: row.outcome,
    duration_ms: row.ended_ms - row.started_ms,
    first_token_ms: labels.first_token_ms === 0 ? null : labels.first_token_ms,
    input_tokens: row.input_tokens,
    output_tokens: row.output_tokens,
    cached_input_tokens: row.cached_input_tokens,
    cost_usd: row.cost_usd,
    ...duplicateField(attributes),
    price_source: row.price_source,
    ...(isCall || texts.prompt !== '' ? { prompt: texts.prompt } : {}),
    ...(isCall || texts.response !== '' ? { response: texts.response } : {}),
    prompt_name: labels.prompt_name === '' ? null : labels.prompt_name,
    prompt_version: labels.prompt_version === '' ? null : labels.prompt_version,
    text_state: state,
    texts_left_on: left_on,
    chars: { prompt: texts.prompt_chars, response: texts.response_chars },
    truncated: isCut,
    started_at: row.started_at,
    ended_at: row.ended_at,
    attributes,
    tags: row.tags,
    sampled: row.sampled,
    events: row.source_format === 'otlp' ? eventsOf(stored) : [],
    links: row.source_format === 'otlp' ? linksOf(stored) : [],
    ...besides,
  };
}
