// Finds the traces that contain a phrase: takes traces whose texts have the words, returns those
// that have the phrases, in order. It reads texts, so it takes a bounded number of traces.
import { phraseConditions } from '../../../pipeline/domain/text/search_text.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import type { ListFilters } from './filters.ts';
import { readPhraseMatches, type TraceRow } from './store.ts';

/** Maximum traces whose texts one request searches. */
export const PHRASE_TRACES_MAX = 2000;

/** Returns the given traces, newest first, that have a span with all the words and phrases. */
export async function findPhrases(
  clickhouse: ClickHouse,
  filters: ListFilters,
  phrases: readonly string[],
  traces: readonly TraceRow[],
  signal: AbortSignal,
): Promise<TraceRow[]> {
  const oldest = traces.at(-1);
  if (oldest === undefined) return [];
  const matches = await readPhraseMatches(
    clickhouse,
    {
      org_id: filters.org_id,
      from_ms: oldest.started_ms,
      to_ms: Math.max(...traces.map((trace) => Date.parse(trace.ended_at))),
      trace_keys: traces.map((trace) => trace.trace_key),
      words: filters.words ?? [],
      phrases: phraseConditions({ phrases }) ?? [],
    },
    { signal },
  );
  const keys = new Set(matches.map((match) => match.trace_key));
  return traces.filter((trace) => keys.has(trace.trace_key));
}
