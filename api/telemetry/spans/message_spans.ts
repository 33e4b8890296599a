// Turns the hits of a search that are messages of a span into hits of that span. Log records hold the
// messages of spans without texts of their own; a search finds the records, and answers with the
// spans, each once, with its best score.
import { type SpanTexts, textsOfMessages } from '../../../pipeline/domain/conversation/span_messages.ts';
import { hasSpanFlag } from '../../../pipeline/domain/traces/span_flags.ts';
import { type ClickHouse, isTooLarge } from '../../../sql/client/client.ts';
import { readMessageSpans, readSpanMessages, SPAN_MESSAGES_BYTES_MAX } from '../../../sql/stores/span_messages.ts';
import type { ScoredRow } from './store.ts';

/** A span lasts at most this long for its messages to lead to it, milliseconds. */
const SPAN_MS_MAX = 3_600_000;

type Found = Awaited<ReturnType<typeof readMessageSpans>>[number];

/** The span that a hit is shown as. */
export type MessageSpan = Pick<Found, 'span_id' | 'name' | 'model' | 'outcome' | 'cost_usd' | 'started_at'>;

type Placed = Pick<ScoredRow, 'trace_id' | 'log_seq' | 'log_index' | 'log_sub'>;

const keyOf = ({ trace_id, log_seq, log_index, log_sub }: Placed): string =>
  `${trace_id} ${log_seq}:${log_index}:${log_sub}`;

/** Returns each hit with the span that it is a message of; null for a hit that is a span itself. */
export async function withSpans<Row extends ScoredRow>(
  clickhouse: ClickHouse,
  org_id: string,
  rows: readonly Row[],
  signal: AbortSignal,
): Promise<{ row: Row; span: MessageSpan | null }[]> {
  // A model call is never a message, so most searches need no read.
  const asked = rows.filter(
    ({ model, flags }) => model === '' && (flags === 0 || hasSpanFlag(flags, 'message_record')),
  );
  const spans = asked.length === 0 ? new Map<string, Found>() : await spansOf(clickhouse, org_id, asked, signal);
  const seen = new Set<string>();
  return rows.flatMap((row) => {
    const found = spans.get(keyOf(row));
    const span = found === undefined ? null : spanOf(found);
    const shown = `${row.trace_id} ${span?.span_id ?? row.span_id}`;
    if (span !== null && seen.has(shown)) return [];
    seen.add(shown);
    return [{ row, span }];
  });
}

const spanOf = ({ span_id, name, model, outcome, cost_usd, started_at }: Found): MessageSpan => ({
  span_id,
  name,
  model,
  outcome,
  cost_usd,
  started_at,
});

async function spansOf(
  clickhouse: ClickHouse,
  org_id: string,
  asked: readonly ScoredRow[],
  signal: AbortSignal,
): Promise<Map<string, Found>> {
  const found = await readMessageSpans(
    clickhouse,
    {
      ...rangeOf(org_id, asked),
      seqs: asked.map(({ log_seq }) => log_seq),
      indexes: asked.map(({ log_index }) => log_index),
      subs: asked.map(({ log_sub }) => log_sub),
    },
    { signal },
  );
  return new Map(found.map((span) => [keyOf(span), span]));
}

function rangeOf(org_id: string, rows: readonly Pick<ScoredRow, 'trace_id' | 'started_ms'>[]) {
  return {
    org_id,
    trace_ids: [...new Set(rows.map(({ trace_id }) => trace_id))],
    from_ms: Math.min(...rows.map(({ started_ms }) => started_ms)) - SPAN_MS_MAX,
    to_ms: Math.max(...rows.map(({ started_ms }) => started_ms)) + SPAN_MS_MAX,
  };
}

/** Returns the whole prompts and responses of the spans that hits are messages of, by trace and span. */
export async function textsOfSpans(
  clickhouse: ClickHouse,
  org_id: string,
  hits: readonly { row: ScoredRow; span: MessageSpan | null }[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, SpanTexts>> {
  const said = hits.flatMap(({ row, span }) => (span === null ? [] : [{ row, span_id: span.span_id }]));
  if (said.length === 0) return new Map();
  const range = rangeOf(
    org_id,
    said.map(({ row }) => row),
  );
  try {
    const span_ids = [...new Set(said.map(({ span_id }) => span_id))];
    const options = { signal, bytesMax: SPAN_MESSAGES_BYTES_MAX };
    const messages = await readSpanMessages(clickhouse, { ...range, span_ids }, options);
    return textsOfMessages(messages.map((one) => ({ ...one, span_id: `${one.trace_id} ${one.span_id}` })));
  } catch (error) {
    if (isTooLarge(error)) return new Map();
    throw error;
  }
}
