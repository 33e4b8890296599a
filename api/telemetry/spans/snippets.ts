// Searches prompts and responses like search.ts, and returns the part of each text around its first
// match in place of the whole texts, so that a response is small however long the texts are.
import { plainText } from '../../../pipeline/domain/text/plain_text.ts';
import { markedTerms } from '../../../pipeline/domain/text/search_text.ts';
import { snippetOf } from '../../../pipeline/domain/text/snippets.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import { withSpans } from './message_spans.ts';
import type { SearchMeta, SearchQuery, SnippetHit } from './schema.ts';
import { type Counts, rankedSpans, type ReadScored } from './search.ts';
import { readPlaces, readSnippets, readWaiting, type SnippetRow } from './store.ts';

/** Bytes up to which the texts of all hits together are read whole, the best hits first. */
const TEXT_BYTES_MAX = 8 * 1024 * 1024;
/** Characters that are read of any other text. */
const BEGINNING_CHARS = 8192;

export interface SnippetAnswer {
  data: SnippetHit[];
  meta: SearchMeta;
}

/** Serves GET /v1/spans/search with snippets. */
export async function searchSnippets(
  clickhouse: ClickHouse,
  orgId: string,
  query: SearchQuery,
  signal: AbortSignal,
): Promise<SnippetAnswer> {
  const began = performance.now();
  const read: ReadScored<SnippetRow> = (params, _counts, options) =>
    readSnippets(clickhouse, { ...params, finds: true, bytes: TEXT_BYTES_MAX, chars: BEGINNING_CHARS }, options);
  const [{ rows, meta, counts }, [landed]] = await Promise.all([
    rankedSpans({ clickhouse, org_id: orgId, query, read, signal }),
    readWaiting(clickhouse, { org_id: orgId, since_ms: query.since, until_ms: query.until }, { signal }),
  ]);
  const [places, hits] = await Promise.all([
    placesOf(clickhouse, orgId, rows, signal),
    withSpans(clickhouse, orgId, rows, signal),
  ]);
  return {
    data: hits.map(({ row, span }) => ({ ...hitOf(row, query, counts, places.get(placeKey(row))), ...span })),
    meta: {
      ...meta,
      terms: termsOf(query, counts),
      waiting: landed?.waiting ?? 0,
      took_ms: Math.round(performance.now() - began),
    },
  };
}

interface Place {
  name: string;
  agent_id: string;
}

const placeKey = ({
  trace_id,
  log_seq,
  log_index,
  log_sub,
}: Pick<SnippetRow, 'trace_id' | 'log_seq' | 'log_index' | 'log_sub'>) =>
  `${trace_id} ${log_seq}:${log_index}:${log_sub}`;

async function placesOf(
  clickhouse: ClickHouse,
  org_id: string,
  rows: readonly SnippetRow[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Place>> {
  if (rows.length === 0) return new Map();
  const found = await readPlaces(
    clickhouse,
    {
      org_id,
      times: [...new Set(rows.map(({ started_at }) => started_at.slice(0, 23).replace('T', ' ')))],
      trace_ids: rows.map(({ trace_id }) => trace_id),
      seqs: rows.map(({ log_seq }) => log_seq),
      indexes: rows.map(({ log_index }) => log_index),
      subs: rows.map(({ log_sub }) => log_sub),
    },
    { signal },
  );
  return new Map(found.map((place) => [placeKey(place), place]));
}

function hitOf(row: SnippetRow, query: SearchQuery, counts: Counts, place: Place | undefined): SnippetHit {
  const { span_id, trace_id, model, outcome, started_at, cost_usd, score } = row;
  return {
    span_id,
    trace_id,
    name: place?.name ?? '',
    model,
    agent_id: place === undefined || place.agent_id === '' ? null : place.agent_id,
    outcome,
    started_at,
    cost_usd,
    score,
    score_parts: partsOf(row, counts),
    ...bestSnippet(row, query, counts),
  };
}

/** Returns what each word adds to the score; the store lists them in the order of the terms, stop words apart. */
function partsOf({ plain_parts, stop_parts }: SnippetRow, { terms }: Counts): SnippetHit['score_parts'] {
  const plain = terms.filter(({ stop }) => !stop).map(({ word }, index) => ({ word, score: plain_parts[index] ?? 0 }));
  const stops = terms.filter(({ stop }) => stop).map(({ word }, index) => ({ word, score: stop_parts[index] ?? 0 }));
  return [...plain, ...stops].filter(({ score }) => score > 0).sort((a, b) => b.score - a.score);
}

/**
 * Returns the snippet whose marked words weigh most; that of the response if both weigh the same. A
 * snippet begins at a phrase if there is one, else at the rarest word.
 */
function bestSnippet(
  row: SnippetRow,
  { q }: SearchQuery,
  { terms }: Counts,
): Pick<SnippetHit, 'part' | 'snippet' | 'marks'> {
  const weights = new Map(terms.map(({ word, idf }) => [word, idf]));
  const weightOf = (term: string): number => term.split(' ').reduce((sum, word) => sum + (weights.get(word) ?? 0), 0);
  const marked = markedTerms(q);
  const firsts = [...q.phrases, ...terms.map(({ word }) => word)];
  const of = (part: SnippetHit['part'], text: string) => {
    const { found, ...snippet } = snippetOf(plainText(text), marked, firsts);
    return { part, ...snippet, weight: found.reduce((sum, term) => sum + weightOf(term), 0) };
  };
  const response = of('response', row.response);
  const prompt = of('prompt', row.prompt);
  const { part, snippet, marks } = prompt.weight > response.weight || response.snippet === '' ? prompt : response;
  return { part, snippet, marks };
}

/** Returns the words of the query with their counts, the rarest first. */
function termsOf({ q }: SearchQuery, { terms }: Counts): NonNullable<SearchMeta['terms']> {
  const known = new Map(terms.map(({ word, df, idf }) => [word, { word, df, idf }]));
  return q.words.map(({ word }) => known.get(word) ?? { word, df: 0, idf: 0 }).sort((a, b) => a.df - b.df);
}
