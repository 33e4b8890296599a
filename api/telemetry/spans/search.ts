// Searches prompts and responses, ranked by BM25. It reads in two rounds: first the counts that the
// ranking needs (documents, their mean length, documents with each word), then the scores, for
// which the store reads only the texts that are returned. Scores are exact. The number of scored
// spans is bounded: if words are so common that too many spans have them, rare words are scored
// over all time and common ones over the newest spans, unless a span with common words alone cannot
// rank.
import type { SpanTexts } from '../../../pipeline/domain/conversation/span_messages.ts';
import { inverseDocumentFrequency, termScoreMax } from '../../../pipeline/domain/text/bm25.ts';
import { phraseConditions } from '../../../pipeline/domain/text/search_text.ts';
import { dateOf, dayOf } from '../../../pipeline/domain/time/days.ts';
import type { QueryWord } from '../../../pipeline/domain/text/text_terms.ts';
import { type ClickHouse, isTooLarge } from '../../../sql/client/client.ts';
import { type MessageSpan, textsOfSpans, withSpans } from './message_spans.ts';
import type { SearchHit, SearchMeta, SearchQuery } from './schema.ts';
import {
  type Candidates,
  type DayCounts,
  readCount,
  readDays,
  readScores,
  readWords,
  type ScoredRow,
  type ScoreParams,
  type TextRow,
} from './store.ts';

/** Maximum spans that one pass scores; a search has at most two passes. */
const CANDIDATES_MAX = 150_000;
/** Maximum bytes of the texts in one response. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;
const DAY_MS = 86_400_000;

export interface SearchAnswer {
  data: SearchHit[];
  meta: { candidates: number; truncated: boolean };
}

/** A word that occurs, with its weight. */
export interface Term extends QueryWord {
  df: number;
  idf: number;
}

export interface Counts {
  days: DayCounts[];
  avgdl: number;
  /** The rarest word first; words that occur nowhere are left out. */
  terms: Term[];
  /** Number of documents with any of the words. */
  any: number;
}

/** Reads the best candidates; the rows of searches with and without snippets differ. */
export type ReadScored<Row extends ScoredRow> = (
  params: ScoreParams,
  counts: Counts,
  options: { signal: AbortSignal; bytesMax: number },
) => Promise<Row[]>;

interface Search<Row extends ScoredRow> {
  clickhouse: ClickHouse;
  read: ReadScored<Row>;
  org_id: string;
  query: SearchQuery;
  counts: Counts;
  candidatesMax: number;
  signal: AbortSignal;
}

interface Pass<Row extends ScoredRow> {
  rows: Row[];
  candidates: number;
  /**
   * True if there are fewer rows than requested, since their texts exceed the maximum size of a
   * response.
   */
  cut: boolean;
}

/** Serves GET /v1/spans/search without snippets. */
export async function searchSpans(
  clickhouse: ClickHouse,
  orgId: string,
  query: SearchQuery,
  signal: AbortSignal,
  candidatesMax = CANDIDATES_MAX,
): Promise<SearchAnswer> {
  const read: ReadScored<TextRow> = (params, _counts, options) => readScores(clickhouse, params, options);
  const { rows, meta } = await rankedSpans({ clickhouse, org_id: orgId, query, read, candidatesMax, signal });
  const hits = await withSpans(clickhouse, orgId, rows, signal);
  const texts = await textsOfSpans(clickhouse, orgId, hits, signal);
  return { data: hits.map(({ row, span }) => (span === null ? hitOf(row) : spanHit(row, span, texts))), meta };
}

interface Ranked<Row extends ScoredRow> {
  rows: Row[];
  meta: Pick<SearchMeta, 'candidates' | 'truncated'>;
  counts: Counts;
}

/** Returns the best spans with the counts that their scores were computed from. */
export async function rankedSpans<Row extends ScoredRow>({
  candidatesMax = CANDIDATES_MAX,
  ...asked
}: Omit<Search<Row>, 'counts' | 'candidatesMax'> & { candidatesMax?: number }): Promise<Ranked<Row>> {
  const counts = await readCounts(asked.clickhouse, asked.org_id, asked.query, asked.signal);
  if (counts.terms.length === 0) return { rows: [], meta: { candidates: 0, truncated: false }, counts };
  const { rows, candidates, truncated, cut } = await rank({ ...asked, counts, candidatesMax });
  return { rows, meta: { candidates, truncated: truncated || cut }, counts };
}

async function readCounts(
  clickhouse: ClickHouse,
  orgId: string,
  query: SearchQuery,
  signal: AbortSignal,
): Promise<Counts> {
  const time = { org_id: orgId, since_ms: query.since, until_ms: query.until };
  const since_day = query.since === undefined ? undefined : dateOf(dayOf(query.since));
  const until_day = query.until === undefined ? undefined : dateOf(dayOf(query.until));
  const last_day = until_day === since_day ? undefined : until_day;
  const [days, [found]] = await Promise.all([
    readDays(clickhouse, { ...time, since_day, until_day, last_day }, { signal }),
    readWords(clickhouse, { ...time, words: query.q.words.map(({ word }) => ({ word })) }, { signal }),
  ]);
  const documents = days.reduce((sum, day) => sum + day.documents, 0);
  const words = days.reduce((sum, day) => sum + day.words, 0);
  const terms = query.q.words
    .map((word, index) => ({ ...word, df: found?.df[index] ?? 0 }))
    .filter(({ df }) => df > 0)
    // A row that lands between the two reads may make df exceed the number of documents.
    .map((word) => ({ ...word, idf: inverseDocumentFrequency(Math.max(documents, word.df), word.df) }))
    .sort((a, b) => a.df - b.df);
  return { days, avgdl: documents === 0 ? 1 : words / documents, terms, any: found?.any ?? 0 };
}

/** Returns how many of the rarest words can be scored over all time. */
export function rareTerms(terms: readonly Term[], candidatesMax: number): number {
  let sum = 0;
  const index = terms.findIndex(({ df }) => (sum += df) > candidatesMax);
  return index === -1 ? terms.length : index;
}

/** Returns the words of the phrases, the rarest first. */
function quotedTerms<Row extends ScoredRow>({ query, counts }: Search<Row>): Term[] {
  const quoted = new Set(query.q.phrases.flatMap((phrase) => phrase.split(' ')));
  return counts.terms.filter(({ word }) => quoted.has(word));
}

async function rank<Row extends ScoredRow>(search: Search<Row>): Promise<Pass<Row> & { truncated: boolean }> {
  const { terms, any, days } = search.counts;
  const { candidatesMax } = search;
  const { limit } = search.query;
  const [quoted] = quotedTerms(search);
  // Every hit has every phrase, so the rarest word of any of them finds all hits.
  if (quoted !== undefined && quoted.df <= candidatesMax)
    return { ...(await score(search, [quoted], null)), truncated: false };
  const rare = terms.slice(0, rareTerms(terms, candidatesMax));
  if (rare.length === terms.length || any <= candidatesMax)
    return { ...(await score(search, terms, any)), truncated: false };
  const best: Pass<Row> = rare.length === 0 ? { rows: [], candidates: 0, cut: false } : await score(search, rare, null);
  const threshold = best.rows[limit - 1]?.score;
  const common = terms.slice(rare.length);
  const commonMax = common.reduce((sum, { idf }) => sum + termScoreMax(idf), 0);
  if (threshold !== undefined && threshold > commonMax) return { ...best, truncated: false };
  const since = windowStart(days, any, candidatesMax);
  const newest = await score(search, terms, null, since);
  return {
    rows: merge(best.rows, newest.rows, limit),
    candidates: best.candidates + newest.candidates,
    cut: best.cut || newest.cut,
    truncated: true,
  };
}

/**
 * Scores the spans that have any of `must`.
 *
 * @param candidates number of these spans without filters; null if unknown
 */
async function score<Row extends ScoredRow>(
  search: Search<Row>,
  must: readonly Term[],
  candidates: number | null,
  since?: number,
): Promise<Pass<Row>> {
  const { clickhouse, org_id, query, signal } = search;
  const which: Candidates = {
    org_id,
    since_ms: since === undefined ? query.since : Math.max(since, query.since ?? since),
    until_ms: query.until,
    model: query.model,
    outcome: query.outcome,
    min_cost_usd: query.min_cost_usd,
    max_cost_usd: query.max_cost_usd,
    ...ofTraces(query),
    must: must.map(({ word }) => ({ word })),
    phrases: phraseConditions(query.q),
  };
  const filtered = [
    query.model,
    query.outcome,
    query.min_cost_usd,
    query.max_cost_usd,
    which.of_traces,
    which.phrases,
  ].some((filter) => filter !== undefined);
  const known = filtered ? null : candidates;
  const [scored, count] = await Promise.all([
    scoredRows(search, which, query.limit),
    known ?? readCount(clickhouse, which, { signal }),
  ]);
  return { ...scored, candidates: typeof count === 'number' ? count : (count[0]?.candidates ?? 0) };
}

/** Returns the filters by what the traces of spans are. */
function ofTraces({ agent_id, tags = [] }: SearchQuery): Pick<Candidates, 'of_traces' | 'agent_id' | 'tags'> {
  const wanted = tags.length === 0 ? undefined : tags;
  return agent_id === undefined && wanted === undefined ? {} : { of_traces: true, agent_id, tags: wanted };
}

/**
 * Returns the best candidates; fewer than `limit` if their texts exceed the maximum size of a
 * response.
 */
async function scoredRows<Row extends ScoredRow>(
  search: Search<Row>,
  which: Candidates,
  limit: number,
): Promise<Omit<Pass<Row>, 'candidates'>> {
  const { read, counts, signal } = search;
  const weighted = counts.terms.map(({ word, hash, stop, idf }) => ({ word, hash, stop, weight: termScoreMax(idf) }));
  const fields = ({ word, hash, weight }: { word: string; hash: number; weight: number }) => ({ word, hash, weight });
  const needed = new Set(which.must.map(({ word }) => word));
  const params = {
    ...which,
    plain: weighted.filter(({ stop }) => !stop).map(fields),
    stops: weighted.filter(({ stop }) => stop).map(fields),
    also: counts.terms.filter(({ word }) => !needed.has(word)).map(({ word }) => ({ word })),
    avgdl: counts.avgdl,
    rows: limit,
  };
  try {
    const rows = await read(params, counts, { signal, bytesMax: ANSWER_BYTES_MAX });
    return { rows, cut: limit < search.query.limit && rows.length === limit };
  } catch (error) {
    if (!isTooLarge(error) || limit === 1) throw error;
    return scoredRows(search, which, Math.ceil(limit / 4));
  }
}

/**
 * Returns the start of the newest period that has about `wanted` candidates, if candidates are
 * distributed in time as all documents are. Milliseconds since the epoch.
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

/** Merges the results of two passes; a span in both counts once. */
function merge<Row extends ScoredRow>(a: readonly Row[], b: readonly Row[], limit: number): Row[] {
  const rows = new Map([...a, ...b].map((row) => [placeKey(row), row]));
  return [...rows.values()].sort((x, y) => y.score - x.score || y.started_ms - x.started_ms).slice(0, limit);
}

const placeKey = ({ log_seq, log_index, log_sub }: ScoredRow): string => `${log_seq}:${log_index}:${log_sub}`;

function hitOf({ span_id, trace_id, prompt, response, model, score }: TextRow): SearchHit {
  return { span_id, trace_id, prompt, response, model, score };
}

function spanHit(row: TextRow, { span_id, model }: MessageSpan, texts: ReadonlyMap<string, SpanTexts>): SearchHit {
  return { ...hitOf(row), span_id, model, ...texts.get(`${row.trace_id} ${span_id}`) };
}
