// Search over prompts and responses, ranked by BM25.
// Two rounds of reads: the counts that the ranking needs (documents, their mean length, in how many each word occurs), then
// the scores, which the store computes without reading a text; at last the texts of what is shown.
// Scores are exact. Which spans are scored is bounded: where words are so common that their spans are too many, rare words
// are scored over all the time and common ones over the newest spans, unless no span of common words alone could rank.
import { inverseDocumentFrequency, termScoreMax } from '../../pipeline/domain/bm25.ts';
import type { QueryWord } from '../../pipeline/domain/text_terms.ts';
import type { ClickHouse } from '../../sql/client.ts';
import type { SearchHit, SearchQuery } from './schema.ts';
import { type DayCounts, readDays, readHits, readScores, readWords, type ScoredRow } from './store.ts';

/** Spans that one pass may score; a search has at most two passes. */
const CANDIDATES_MAX = 150_000;
const DAY_MS = 86_400_000;

export interface SearchAnswer {
  data: SearchHit[];
  meta: { candidates: number; truncated: boolean };
}

/** A word that occurs, with what it weighs. */
export interface Term extends QueryWord {
  df: number;
  idf: number;
}

interface Counts {
  days: DayCounts[];
  avgdl: number;
  /** Rarest first; words that occur nowhere are left out. */
  terms: Term[];
  /** Documents with any of the words. */
  any: number;
}

interface Search {
  clickhouse: ClickHouse;
  org_id: string;
  query: SearchQuery;
  counts: Counts;
  candidatesMax: number;
  signal: AbortSignal;
}

interface Pass {
  rows: ScoredRow[];
  candidates: number;
}

/** Answers GET /v1/spans/search. */
export async function searchSpans(
  clickhouse: ClickHouse,
  orgId: string,
  query: SearchQuery,
  signal: AbortSignal,
  candidatesMax = CANDIDATES_MAX,
): Promise<SearchAnswer> {
  const counts = await readCounts(clickhouse, orgId, query, signal);
  if (counts.terms.length === 0) return { data: [], meta: { candidates: 0, truncated: false } };
  const search = { clickhouse, org_id: orgId, query, counts, candidatesMax, signal };
  const { rows, candidates, truncated } = await rank(search);
  return { data: await withTexts(search, rows), meta: { candidates, truncated } };
}

async function readCounts(clickhouse: ClickHouse, orgId: string, query: SearchQuery, signal: AbortSignal): Promise<Counts> {
  const time = { org_id: orgId, since_ms: query.since };
  const since_day = query.since === undefined ? undefined : new Date(query.since).toISOString().slice(0, 10);
  const [days, [found]] = await Promise.all([
    readDays(clickhouse, { ...time, since_day }, { signal }),
    readWords(clickhouse, { ...time, words: query.q.map(({ word }) => ({ word })) }, { signal }),
  ]);
  const documents = days.reduce((sum, day) => sum + day.documents, 0);
  const words = days.reduce((sum, day) => sum + day.words, 0);
  const terms = query.q
    .map((word, index) => ({ ...word, df: found?.df[index] ?? 0 }))
    .filter(({ df }) => df > 0)
    // A row that landed between the two reads may make df larger than the number of documents.
    .map((word) => ({ ...word, idf: inverseDocumentFrequency(Math.max(documents, word.df), word.df) }))
    .sort((a, b) => a.df - b.df);
  return { days, avgdl: documents === 0 ? 1 : words / documents, terms, any: found?.any ?? 0 };
}

/** How many of the rarest words may be scored over all the time. */
export function rareTerms(terms: readonly Term[], candidatesMax: number): number {
  let sum = 0;
  const index = terms.findIndex(({ df }) => (sum += df) > candidatesMax);
  return index === -1 ? terms.length : index;
}

async function rank(search: Search): Promise<Pass & { truncated: boolean }> {
  const { terms, any, days } = search.counts;
  const { candidatesMax } = search;
  const { limit } = search.query;
  const rare = terms.slice(0, rareTerms(terms, candidatesMax));
  if (rare.length === terms.length || any <= candidatesMax) return { ...(await score(search, terms, any)), truncated: false };
  const best = rare.length === 0 ? { rows: [], candidates: 0 } : await score(search, rare, null);
  const threshold = best.rows[limit - 1]?.score;
  const common = terms.slice(rare.length);
  const commonMax = common.reduce((sum, { idf }) => sum + termScoreMax(idf), 0);
  if (threshold !== undefined && threshold > commonMax) return { ...best, truncated: false };
  const since = windowStart(days, any, candidatesMax);
  const newest = await score(search, terms, null, since);
  return { rows: merge(best.rows, newest.rows, limit), candidates: best.candidates + newest.candidates, truncated: true };
}

/**
 * Scores the spans that hold any of `must`.
 * @param candidates how many these are, null where it has to be counted
 */
async function score(
  { clickhouse, org_id, query, counts, signal }: Search,
  must: readonly Term[],
  candidates: number | null,
  since?: number,
): Promise<Pass> {
  const filtered = [query.model, query.outcome, query.min_cost_usd, query.max_cost_usd].some((filter) => filter !== undefined);
  const counted = filtered || candidates === null;
  const weighted = counts.terms.map(({ word, hash, stop, idf }) => ({ word, hash, stop, weight: termScoreMax(idf) }));
  const fields = ({ word, hash, weight }: { word: string; hash: number; weight: number }) => ({ word, hash, weight });
  const needed = new Set(must.map(({ word }) => word));
  const rows = await readScores(
    clickhouse,
    {
      org_id,
      since_ms: since === undefined ? query.since : Math.max(since, query.since ?? since),
      model: query.model,
      outcome: query.outcome,
      min_cost_usd: query.min_cost_usd,
      max_cost_usd: query.max_cost_usd,
      plain: weighted.filter(({ stop }) => !stop).map(fields),
      stops: weighted.filter(({ stop }) => stop).map(fields),
      must: must.map(({ word }) => ({ word })),
      also: counts.terms.filter(({ word }) => !needed.has(word)).map(({ word }) => ({ word })),
      avgdl: counts.avgdl,
      rows: query.limit,
      counted: counted ? true : undefined,
    },
    { signal },
  );
  return { rows, candidates: counted ? (rows[0]?.candidates ?? 0) : candidates };
}

/**
 * Where the newest stretch of time begins that holds about `wanted` candidates, if they lie in time as all documents do.
 * Milliseconds.
 */
export function windowStart(days: readonly DayCounts[], candidates: number, wanted: number): number {
  const documents = days.reduce((sum, day) => sum + day.documents, 0);
  let left = (wanted / candidates) * documents;
  const newestFirst = days.toSorted((a, b) => b.day_ms - a.day_ms);
  for (const { day_ms, documents: ofDay } of newestFirst) {
    if (left <= ofDay) return Math.floor(day_ms + DAY_MS * (1 - left / ofDay));
    left -= ofDay;
  }
  return newestFirst.at(-1)?.day_ms ?? 0;
}

/** The best of two passes; a span that is in both counts once. */
function merge(a: readonly ScoredRow[], b: readonly ScoredRow[], limit: number): ScoredRow[] {
  const rows = new Map([...a, ...b].map((row) => [placeKey(row), row]));
  return [...rows.values()].sort((x, y) => y.score - x.score || y.started_ms - x.started_ms).slice(0, limit);
}

const placeKey = ({ log_seq, log_index, log_sub }: Pick<ScoredRow, 'log_seq' | 'log_index' | 'log_sub'>): string =>
  `${log_seq}:${String(log_index)}:${String(log_sub)}`;

/** The texts of ranked spans, in their order; a span that was deleted in between is left out. */
async function withTexts({ clickhouse, org_id, signal }: Search, rows: readonly ScoredRow[]): Promise<SearchHit[]> {
  if (rows.length === 0) return [];
  const hits = await readHits(
    clickhouse,
    {
      org_id,
      // As ClickHouse takes times within an array.
      times: [...new Set(rows.map((row) => row.started_at.slice(0, 23).replace('T', ' ')))],
      seqs: rows.map((row) => row.log_seq),
      indexes: rows.map((row) => row.log_index),
      subs: rows.map((row) => row.log_sub),
    },
    { signal },
  );
  const byPlace = new Map(hits.map((hit) => [placeKey(hit), hit]));
  return rows.flatMap((row) => {
    const hit = byPlace.get(placeKey(row));
    return hit === undefined
      ? []
      : [{ span_id: hit.span_id, trace_id: hit.trace_id, prompt: hit.prompt, response: hit.response, model: hit.model, score: row.score }];
  });
}
