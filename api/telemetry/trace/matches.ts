// Finds words and phrases in the texts of one trace: the store finds the texts and cuts out the
// part around the first match, this module marks the matches in it.
import type { FindText } from '../../../pipeline/domain/text/find_text.ts';
import { snippetOf } from '../../../pipeline/domain/text/snippets.ts';
import type { TraceDeps } from './deps.ts';
import { type Match, MATCHES_MAX, type TextSide } from './schema.ts';
import { readMatches } from './store.ts';

/** Bytes of a text that are read around its first match. */
const BYTES_BEFORE = 240;
const WINDOW_BYTES = 800;

/** Serves GET /v1/traces/{trace_id}/matches. */
export async function findMatches(
  deps: TraceDeps,
  orgId: string,
  asked: { trace_id: string; search: FindText },
  signal: AbortSignal,
) {
  const { search } = asked;
  const range = await deps.locate(orgId, asked.trace_id, signal);
  const rows = await readMatches(
    deps.clickhouse,
    {
      ...range,
      any_pattern: search.any,
      patterns: search.all,
      bytes_before: BYTES_BEFORE,
      bytes: WINDOW_BYTES,
      rows: MATCHES_MAX + 1,
    },
    { signal },
  );
  const matches = rows.flatMap(({ span_id, prompt_window, response_window, prompt_is_json }) => [
    ...matchIn(span_id, 'prompt', prompt_window, search, prompt_is_json),
    ...matchIn(span_id, 'response', response_window, search, false),
  ]);
  return { data: matches.slice(0, MATCHES_MAX), meta: { truncated: matches.length > MATCHES_MAX } };
}

function matchIn(span_id: string, part: TextSide, window: string, { terms }: FindText, isJson: boolean): Match[] {
  if (window === '') return [];
  const { snippet, marks } = snippetOf(window, terms, isJson);
  return [{ span_id, part, snippet, marks }];
}
