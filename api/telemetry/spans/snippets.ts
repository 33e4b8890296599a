// Searches prompts and responses like search.ts, and returns the part of each text around its first
// match in place of the whole texts, so that a response is small however long the texts are.
import { plainText } from '../../../pipeline/domain/text/plain_text.ts';
import { markedTerms } from '../../../pipeline/domain/text/search_text.ts';
import { snippetOf } from '../../../pipeline/domain/text/snippets.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import { withSpans } from './message_spans.ts';
import type { SearchMeta, SearchQuery, SnippetHit } from './schema.ts';
import type { RankedDocuments } from './postings/document_search.ts';
import { documentParams, type RankedSpans, rankSpans, scoredRows, type SearchDeps } from './search.ts';
import { readAgents, readPlaces, readSnippets, readUnnumbered, readWaiting, type SnippetRow } from './store.ts';

/** Bytes up to which the texts of all hits together are read whole, the best hits first. */
const TEXT_BYTES_MAX = 8 * 1024 * 1024;
/** Characters that are read of any other text. */
const BEGINNING_CHARS = 8192;

type Counts = Pick<RankedDocuments, 'terms'>;

export interface SnippetAnswer {
  data: SnippetHit[];
  meta: SearchMeta;
}

/** Serves GET /v1/spans/search with snippets. */
export async function searchSnippets(
  deps: SearchDeps,
  orgId: string,
  query: SearchQuery,
  signal: AbortSignal,
): Promise<SnippetAnswer> {
  const began = performance.now();
  const { clickhouse } = deps;
  const time = { org_id: orgId, since_ms: query.since, until_ms: query.until };
  const [{ best, ranking, meta }, [landed]] = await Promise.all([
    rankSpans(deps, orgId, query, signal),
    readWaiting(clickhouse, time, { signal }),
  ]);
  const rows = await snippetRows(clickhouse, orgId, { best, ranking }, signal);
  const [places, hits, [older]] = await Promise.all([
    placesOf(clickhouse, orgId, rows, signal),
    withSpans(clickhouse, orgId, rows, signal),
    // Seldom: such texts are from before an upgrade, or just restored.
    ranking.unnumbered ? readUnnumbered(clickhouse, time, { signal }) : [],
  ]);
  return {
    data: hits.map(({ row, span }) => ({ ...hitOf(row, query, ranking, places.get(placeKey(row))), ...span })),
    meta: {
      ...meta,
      terms: termsOf(query, ranking),
      waiting: (landed?.waiting ?? 0) + (older?.waiting ?? 0),
      took_ms: Math.round(performance.now() - began),
    },
  };
}

/** A hit with what each of the terms adds to its score. */
interface SnippetHitRow extends SnippetRow {
  score: number;
  parts: readonly number[];
}

async function snippetRows(
  clickhouse: ClickHouse,
  orgId: string,
  { best, ranking }: Pick<RankedSpans, 'best' | 'ranking'>,
  signal: AbortSignal,
): Promise<SnippetHitRow[]> {
  if (best.length === 0) return [];
  const bounds = { bytes: TEXT_BYTES_MAX, chars: BEGINNING_CHARS };
  const rows = await readSnippets(clickhouse, { ...documentParams(orgId, best), ...bounds }, { signal });
  const parts = ranking.partsOf(best);
  return scoredRows(best, rows).map((row) => ({ ...row, parts: parts[row.rank] ?? [] }));
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
  if (rows.every(({ flags }) => flags !== 0)) return namedPlacesOf(clickhouse, org_id, rows, signal);
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

/** Returns the places of rows that have their names. */
async function namedPlacesOf(
  clickhouse: ClickHouse,
  org_id: string,
  rows: readonly SnippetRow[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Place>> {
  const trace_ids = [...new Set(rows.map(({ trace_id }) => trace_id))];
  const found = await readAgents(clickhouse, { org_id, trace_ids }, { signal });
  const agents = new Map(found.map(({ trace_id, agent_id }) => [trace_id, agent_id]));
  return new Map(rows.map((row) => [placeKey(row), { name: row.name, agent_id: agents.get(row.trace_id) ?? '' }]));
}

function hitOf(row: SnippetHitRow, query: SearchQuery, counts: Counts, place: Place | undefined): SnippetHit {
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

/** Returns what each word adds to the score, the most first. */
function partsOf({ parts }: SnippetHitRow, { terms }: Counts): SnippetHit['score_parts'] {
  return terms
    .map(({ word }, index) => ({ word, score: parts[index] ?? 0 }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score);
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
  return q.words.map((word) => known.get(word) ?? { word, df: 0, idf: 0 }).sort((a, b) => a.df - b.df);
}
