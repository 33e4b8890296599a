// Searches prompts and responses, ranked by BM25: ranks documents by their postings, then reads the
// texts of the best. A search for phrases reads the texts of documents that have their words, the
// best first, until enough of them have the phrases.
import type { SpanTexts } from '../../../pipeline/domain/conversation/span_messages.ts';
import { hasPhrases } from '../../../pipeline/domain/text/phrases.ts';
import { type ClickHouse, isTooLarge } from '../../../sql/client/client.ts';
import type { DocumentSearch, RankedDocuments } from './postings/document_search.ts';
import type { Ranked } from './postings/ranking.ts';
import { docOf, type SearchBounds } from './postings/segment_loader.ts';
import { type MessageSpan, textsOfSpans, withSpans } from './message_spans.ts';
import type { SearchHit, SearchMeta, SearchQuery } from './schema.ts';
import { type CandidateFilters, type FoundRow, readTexts } from './store.ts';

/** Maximum bytes of the texts in one response. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;
/** Maximum texts that a search for phrases reads, and texts that one statement reads. */
const PHRASE_TEXTS_MAX = 10_000;
const PHRASE_TEXTS_AT_ONCE = 500;

export interface SearchDeps {
  clickhouse: ClickHouse;
  documents: DocumentSearch;
  /** Bounds of the ranking, where they are not those of the service. */
  bounds?: SearchBounds;
}

export interface SearchAnswer {
  data: SearchHit[];
  meta: Pick<SearchMeta, 'candidates' | 'truncated'>;
}

export interface RankedSpans {
  /** Found documents, the best first. */
  best: Ranked[];
  ranking: RankedDocuments;
  meta: Pick<SearchMeta, 'candidates' | 'truncated'>;
}

/** Serves GET /v1/spans/search without snippets. */
export async function searchSpans(
  deps: SearchDeps,
  orgId: string,
  query: SearchQuery,
  signal: AbortSignal,
): Promise<SearchAnswer> {
  const { best, meta } = await rankSpans(deps, orgId, query, signal);
  const { rows, cut } = await textsWithin(deps.clickhouse, orgId, best, signal);
  const hits = await withSpans(deps.clickhouse, orgId, rows, signal);
  const texts = await textsOfSpans(deps.clickhouse, orgId, hits, signal);
  return {
    data: hits.map(({ row, span }) => (span === null ? hitOf(row) : spanHit(row, span, texts))),
    meta: { ...meta, truncated: meta.truncated || cut },
  };
}

/** Returns the best spans. */
export async function rankSpans(
  { clickhouse, documents, bounds }: SearchDeps,
  org_id: string,
  query: SearchQuery,
  signal: AbortSignal,
): Promise<RankedSpans> {
  const { phrases, words } = query.q;
  const ranking = await documents.rank(
    {
      org_id,
      words,
      required: new Set(phrases.flatMap((phrase) => phrase.split(' '))),
      since: query.since,
      until: query.until,
      filters: filtersOf(org_id, query),
      limit: phrases.length === 0 ? query.limit : PHRASE_TEXTS_MAX,
    },
    signal,
    ...(bounds === undefined ? [] : [bounds]),
  );
  const { best, candidates, truncated } = ranking;
  if (phrases.length === 0) return { best, ranking, meta: { candidates, truncated } };
  const found = await withPhrases(clickhouse, org_id, best, phrases, query.limit, signal);
  const unread = found.length < query.limit && candidates > best.length;
  return { best: found, ranking, meta: { candidates, truncated: truncated || unread } };
}

/** Returns the filters of a search besides words and time; null where there are none. */
function filtersOf(org_id: string, query: SearchQuery): CandidateFilters | null {
  const { model, outcome, min_cost_usd, max_cost_usd, agent_id } = query;
  const tags = query.tags === undefined || query.tags.length === 0 ? undefined : query.tags;
  const given = [model, outcome, min_cost_usd, max_cost_usd, agent_id, tags].some((filter) => filter !== undefined);
  if (!given) return null;
  return {
    org_id,
    since_ms: query.since,
    until_ms: query.until,
    model,
    outcome,
    min_cost_usd,
    max_cost_usd,
    of_traces: agent_id === undefined && tags === undefined ? undefined : true,
    agent_id,
    tags,
  };
}

/** Returns the first documents, up to a number, whose texts have every phrase. */
async function withPhrases(
  clickhouse: ClickHouse,
  org_id: string,
  ranked: readonly Ranked[],
  phrases: readonly string[],
  limit: number,
  signal: AbortSignal,
): Promise<Ranked[]> {
  const found: Ranked[] = [];
  for (let at = 0; at < ranked.length && found.length < limit; at += PHRASE_TEXTS_AT_ONCE) {
    const group = ranked.slice(at, at + PHRASE_TEXTS_AT_ONCE);
    const having = new Set<string>();
    for await (const rows of readTexts.stream(clickhouse, documentParams(org_id, group), { signal }))
      for (const { doc, prompt, response } of rows) if (hasPhrases(prompt, response, phrases)) having.add(doc);
    found.push(...group.filter((document) => having.has(String(docOf(document, document.place)))));
  }
  return found.slice(0, limit);
}

/** Returns the parameters for the texts of documents. */
export function documentParams(org_id: string, documents: readonly Ranked[]) {
  return {
    org_id,
    times: [...new Set(documents.map(({ time }) => new Date(time).toISOString().slice(0, 23).replace('T', ' ')))],
    docs: documents.map((document) => String(docOf(document, document.place))),
  };
}

/** Returns the rows in the order of the documents, each with its score. */
export function scoredRows<Row extends Pick<FoundRow, 'doc'>>(
  documents: readonly Ranked[],
  rows: readonly Row[],
): (Row & { score: number; rank: number })[] {
  const byDoc = new Map(rows.map((row) => [row.doc, row]));
  return documents.flatMap((document, rank) => {
    const row = byDoc.get(String(docOf(document, document.place)));
    return row === undefined ? [] : [{ ...row, score: document.score, rank }];
  });
}

type TextRow = FoundRow & { score: number };

/** Returns the texts of the first documents; of fewer if they exceed the maximum size of a response. */
async function textsWithin(
  clickhouse: ClickHouse,
  org_id: string,
  documents: readonly Ranked[],
  signal: AbortSignal,
): Promise<{ rows: TextRow[]; cut: boolean }> {
  if (documents.length === 0) return { rows: [], cut: false };
  for (let count = documents.length; ; count = Math.ceil(count / 4)) {
    const asked = documents.slice(0, count);
    try {
      const options = { signal, bytesMax: ANSWER_BYTES_MAX };
      const rows = await readTexts(clickhouse, documentParams(org_id, asked), options);
      return { rows: scoredRows(asked, rows), cut: count < documents.length };
    } catch (error) {
      if (!isTooLarge(error) || count === 1) throw error;
    }
  }
}

function hitOf({ span_id, trace_id, prompt, response, model, score }: TextRow): SearchHit {
  return { span_id, trace_id, prompt, response, model, score };
}

function spanHit(row: TextRow, { span_id, model }: MessageSpan, texts: ReadonlyMap<string, SpanTexts>): SearchHit {
  return { ...hitOf(row), span_id, model, ...texts.get(`${row.trace_id} ${span_id}`) };
}
