// Finds words and phrases in the texts of one trace: the store finds the texts with the words, this
// module verifies phrases, cuts out the part around the first match and marks the matches in it.
import { hasPhrases } from '../../../pipeline/domain/text/phrases.ts';
import { plainText } from '../../../pipeline/domain/text/plain_text.ts';
import { markedTerms, type SearchText } from '../../../pipeline/domain/text/search_text.ts';
import { snippetOf } from '../../../pipeline/domain/text/snippets.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import { readTexts } from '../../http/text_reads.ts';
import type { TraceDeps } from './deps.ts';
import { type Match, MATCHES_MAX, type TextSide } from './schema.ts';
import {
  placeKey,
  readMatches,
  readWordedPlaces,
  readWordedTexts,
  type TraceRange,
  type WordedPlace,
  type WordedText,
} from './store.ts';

/** Bytes up to which the texts of a trace are read whole, the earliest first. */
const TEXT_BYTES_MAX = 16 * 1024 * 1024;
/** Characters that are read of any other text. */
const BEGINNING_CHARS = 8192;
/** Words and number of the texts that are read for phrases at a time. A word takes some 6 bytes. */
const GROUP_WORDS_MAX = 500_000;
const GROUP_TEXTS_MAX = 500;

/** Serves GET /v1/traces/{trace_id}/matches. */
export async function findMatches(
  deps: TraceDeps,
  orgId: string,
  { trace_id, search }: { trace_id: string; search: SearchText },
  signal: AbortSignal,
) {
  const range = await deps.locate(orgId, trace_id, signal);
  const find = search.phrases.length === 0 ? matchesOfWords : matchesOfPhrases;
  const matches = await find(deps.clickhouse, range, search, signal);
  return { data: matches.slice(0, MATCHES_MAX), meta: { truncated: matches.length > MATCHES_MAX } };
}

async function matchesOfWords(
  clickhouse: ClickHouse,
  range: TraceRange,
  search: SearchText,
  signal: AbortSignal,
): Promise<Match[]> {
  const { words } = search;
  const params = { ...range, words, bytes: TEXT_BYTES_MAX, chars: BEGINNING_CHARS, rows: MATCHES_MAX + 1 };
  const rows = await readMatches(clickhouse, params, { signal });
  return rows.flatMap(({ span_id, ...texts }) => matchesIn(span_id, texts, search));
}

/**
 * Reads the texts that have the words whole, some at a time and in order, until enough of them have the
 * phrases.
 */
async function matchesOfPhrases(
  clickhouse: ClickHouse,
  range: TraceRange,
  search: SearchText,
  signal: AbortSignal,
): Promise<Match[]> {
  const places = await readWordedPlaces(clickhouse, { ...range, words: search.words }, { signal });
  const matches: Match[] = [];
  for (const group of groupsOf(places)) {
    const spanIds = new Map(group.map((place) => [placeKey(place), place.span_id]));
    const found = new Map<string, Match[]>();
    await readTexts(group, {
      stream: (asked) => readWordedTexts.stream(clickhouse, placesOf(range, asked), { signal }),
      keyOf: placeKey,
      take: (row: WordedText) => {
        const key = placeKey(row);
        if (!found.has(key) && hasPhrases(row.prompt, row.response, search.phrases))
          found.set(key, matchesIn(spanIds.get(key) ?? '', row, search));
      },
      signal,
    });
    matches.push(...group.flatMap((place) => found.get(placeKey(place)) ?? []));
    if (matches.length > MATCHES_MAX) break;
  }
  return matches;
}

function* groupsOf(places: readonly WordedPlace[]): Generator<WordedPlace[]> {
  for (let at = 0; at < places.length;) {
    const from = at;
    let words = 0;
    while (at < places.length && at - from < GROUP_TEXTS_MAX && (at === from || words < GROUP_WORDS_MAX)) {
      words += places[at]?.text_words ?? 0;
      at += 1;
    }
    yield places.slice(from, at);
  }
}

const placesOf = ({ org_id, trace_id }: TraceRange, places: readonly WordedPlace[]) => ({
  org_id,
  trace_id,
  times: [...new Set(places.map(({ started_at }) => started_at.slice(0, 23).replace('T', ' ')))],
  seqs: places.map(({ log_seq }) => log_seq),
  indexes: places.map(({ log_index }) => log_index),
  subs: places.map(({ log_sub }) => log_sub),
});

/** Returns the matches in the texts of a span: at least one, since the texts have the words. */
function matchesIn(
  span_id: string,
  { prompt, response }: { prompt: string; response: string },
  search: SearchText,
): Match[] {
  const terms = markedTerms(search);
  const found = [
    matchIn(span_id, 'prompt', prompt, search, terms),
    matchIn(span_id, 'response', response, search, terms),
  ];
  const marked = found.filter(({ marks }) => marks.length > 0);
  // Nothing is marked where the match is beyond the part of the text that was read, or where a phrase
  // begins in the prompt and ends in the response.
  return marked.length > 0 ? marked : found.slice(prompt === '' ? 1 : 0).slice(0, 1);
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
