// Finds words and phrases in the texts of one trace: the store finds the texts, this module cuts out
// the part around the first match and marks the matches in it.
import { plainText } from '../../../pipeline/domain/text/plain_text.ts';
import { markedTerms, phraseConditions, type SearchText } from '../../../pipeline/domain/text/search_text.ts';
import { snippetOf } from '../../../pipeline/domain/text/snippets.ts';
import type { TraceDeps } from './deps.ts';
import { type Match, MATCHES_MAX, type TextSide } from './schema.ts';
import { readMatches } from './store.ts';

/** Bytes up to which the texts of a trace are read whole, the earliest first. */
const TEXT_BYTES_MAX = 16 * 1024 * 1024;
/** Characters that are read of any other text. */
const BEGINNING_CHARS = 8192;

/** Serves GET /v1/traces/{trace_id}/matches. */
export async function findMatches(
  deps: TraceDeps,
  orgId: string,
  asked: { trace_id: string; search: SearchText },
  signal: AbortSignal,
) {
  const { search } = asked;
  const range = await deps.locate(orgId, asked.trace_id, signal);
  const rows = await readMatches(
    deps.clickhouse,
    {
      ...range,
      words: search.words.map(({ word }) => word),
      phrases: phraseConditions(search),
      bytes: TEXT_BYTES_MAX,
      chars: BEGINNING_CHARS,
      rows: MATCHES_MAX + 1,
    },
    { signal },
  );
  const terms = markedTerms(search);
  const matches = rows.flatMap(({ span_id, prompt, response }) => {
    const found = [
      matchIn(span_id, 'prompt', prompt, search, terms),
      matchIn(span_id, 'response', response, search, terms),
    ];
    const marked = found.filter(({ marks }) => marks.length > 0);
    // Nothing is marked where the match is beyond the part of the text that was read.
    return marked.length > 0 ? marked : found.slice(prompt === '' ? 1 : 0).slice(0, 1);
  });
  return { data: matches.slice(0, MATCHES_MAX), meta: { truncated: matches.length > MATCHES_MAX } };
}

function matchIn(
  span_id: string,
  part: TextSide,
  text: string,
  { phrases }: SearchText,
  terms: readonly string[],
): Match {
  const { snippet, marks } = snippetOf(plainText(text), terms, phrases);
  return { span_id, part, snippet, marks };
}
