// Searches prompts and responses like search.ts, and returns the part of each text around its first
// match in place of the whole texts, so that a response is small however long the texts are.
import { findPattern } from '../../../pipeline/domain/text/find_text.ts';
import { snippetOf } from '../../../pipeline/domain/text/snippets.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import type { SearchMeta, SearchQuery, SnippetHit } from './schema.ts';
import { type Counts, rankedSpans, type ReadScored } from './search.ts';
import { readPlaces, readSnippets, type SnippetRow } from './store.ts';

/** Bytes of a text that are read around its first match. */
const BYTES_BEFORE = 240;
const WINDOW_BYTES = 800;
/** The rarest words that a snippet shows first; the others are looked for together. */
const RAREST = 4;

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
  const read: ReadScored<SnippetRow> = (params, counts, options) =>
    readSnippets(
      clickhouse,
      { ...params, finds: findsOf(counts), bytes_before: BYTES_BEFORE, bytes: WINDOW_BYTES },
      options,
    );
  const { rows, meta, counts } = await rankedSpans({ clickhouse, org_id: orgId, query, read, signal });
  const places = await placesOf(clickhouse, orgId, rows, signal);
  return {
    data: rows.map((row) => hitOf(row, counts, places.get(placeKey(row)))),
    meta: { ...meta, terms: termsOf(query, counts), took_ms: Math.round(performance.now() - began) },
  };
}

/** Returns the patterns of the rarest words, each by itself, and of all words together. */
function findsOf({ terms }: Counts): { pattern: string }[] {
  const words = terms.map(({ word }) => word);
  const rarest = terms.filter(({ stop }) => !stop).slice(0, RAREST);
  return [...rarest.map(({ word }) => findPattern([word])), findPattern(words)].map((pattern) => ({ pattern }));
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

function hitOf(row: SnippetRow, counts: Counts, place: Place | undefined): SnippetHit {
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
    ...bestSnippet(row, counts),
  };
}

/** Returns what each word adds to the score; the store lists them in the order of the terms, stop words apart. */
function partsOf({ plain_parts, stop_parts }: SnippetRow, { terms }: Counts): SnippetHit['score_parts'] {
  const plain = terms.filter(({ stop }) => !stop).map(({ word }, index) => ({ word, score: plain_parts[index] ?? 0 }));
  const stops = terms.filter(({ stop }) => stop).map(({ word }, index) => ({ word, score: stop_parts[index] ?? 0 }));
  return [...plain, ...stops].filter(({ score }) => score > 0).sort((a, b) => b.score - a.score);
}

/** Returns the snippet whose marked words weigh most; that of the response if both weigh the same. */
function bestSnippet(row: SnippetRow, { terms }: Counts): Pick<SnippetHit, 'part' | 'snippet' | 'marks'> {
  const weights = new Map(terms.map(({ word, idf }) => [word, idf]));
  const words = terms.map(({ word }) => [word]);
  const of = (part: SnippetHit['part'], window: string, isJson: boolean) => {
    const { snippet, marks } = snippetOf(window, words, isJson);
    const marked = new Set(marks.map(([start, end]) => snippet.slice(start, end).toLowerCase()));
    return { part, snippet, marks, weight: [...marked].reduce((sum, word) => sum + (weights.get(word) ?? 0), 0) };
  };
  const response = of('response', row.response_window, false);
  const prompt = of('prompt', row.prompt_window, row.prompt_is_json);
  const { part, snippet, marks } = prompt.weight > response.weight || response.snippet === '' ? prompt : response;
  return { part, snippet, marks };
}

/** Returns the words of the query with their counts, the rarest first. */
function termsOf({ q }: SearchQuery, { terms }: Counts): NonNullable<SearchMeta['terms']> {
  const known = new Map(terms.map(({ word, df, idf }) => [word, { word, df, idf }]));
  return q.map(({ word }) => known.get(word) ?? { word, df: 0, idf: 0 }).sort((a, b) => a.df - b.df);
}
