// The span search's reads of ClickHouse: each query of sql/queries/spans with the shapes of its
// parameters and rows. Lists of numbers come as RowBinary, because a search may read millions of them.
import { z } from 'zod';
import type { ClickHouse } from '../../../sql/client/client.ts';
import { defineQuery, READ_TIMEOUT_MS } from '../../../sql/client/query.ts';
import { readTemplate, renderTemplate, type TemplateParams } from '../../../sql/client/template.ts';
import { type RowReader, rowsOf } from '../../../sql/client/row_binary.ts';

/** Int64 and UInt64 arrive as text; these values stay below 2^53. */
const count = z.coerce.number().pipe(z.int());
/** A UInt64 inside an array is sent as a bare number. */
const uint64 = z.string().transform(BigInt);

const time = { org_id: z.string(), since_ms: z.int().optional(), until_ms: z.int().optional() };

/** Read of numbers: yields rows as they arrive. */
type BinaryQuery<Params, Row> = (
  client: ClickHouse,
  params: Params,
  options: { signal: AbortSignal },
) => AsyncGenerator<Row>;

/** Returns a read whose rows `take` reads one after the other. */
function binaryQuery<Row>(
  name: string,
  file: string,
  take: (reader: RowReader) => Row,
): BinaryQuery<TemplateParams, Row> {
  const template = readTemplate(file);
  return (client, params, { signal }) =>
    rowsOf(client.bytes({ name, timeoutMs: READ_TIMEOUT_MS, signal, ...renderTemplate(template, params) }), take);
}

export const readSegments = defineQuery({
  name: 'search_segments',
  file: 'spans/search_segments.sql',
  params: z.object(time),
  row: z.object({
    segment: count,
    documents: count,
    words: count,
    /** Sum of the numbers of the documents, modulo 2^64. */
    numbers: z.string(),
    first: z.string().transform(BigInt),
    last: z.string().transform(BigInt),
    from_ms: count,
    to_ms: count,
  }),
});

type SegmentRange = {
  /** Numbers of documents, or segments, that bound those of the list. */
  first: bigint;
  last: bigint;
  segments: readonly number[];
};

export const readDocuments: BinaryQuery<SegmentRange & { org_id: string }, DocumentLists> = binaryQuery(
  'search_documents',
  'spans/search_documents.sql',
  (reader) => ({
    segment: reader.uint64(),
    places: reader.uint16s(),
    lengths: reader.uint32s(),
    times: reader.float64s(),
  }),
);

interface DocumentLists {
  segment: number;
  places: Uint16Array;
  lengths: Uint32Array;
  /** Starts, milliseconds. */
  times: Float64Array;
}

export const readTraceKeys: BinaryQuery<
  SegmentRange & { org_id: string },
  { segment: number; places: Uint16Array; trace_keys: Uint32Array }
> = binaryQuery('search_trace_keys', 'spans/search_trace_keys.sql', (reader) => ({
  segment: reader.uint64(),
  places: reader.uint16s(),
  /** Lower and upper halves, in turns. */
  trace_keys: reader.halvesOfUint64s(),
}));

export const readTracesOfDocuments: BinaryQuery<
  { org_id: string; docs: readonly bigint[] },
  { low: number; high: number }
> = binaryQuery('search_traces_of_documents', 'spans/search_traces_of_documents.sql', (reader) => ({
  low: reader.uint32(),
  high: reader.uint32(),
}));

interface PostingRow {
  /** Index of the word. */
  word: number;
  segment: number;
  places: Uint16Array;
  /** Empty where each document has the word once, and where they were not asked for. */
  counts: Uint16Array;
}

const readCounted = postingsQuery((reader) => reader.uint16s());
const readUncounted = postingsQuery(() => NO_COUNTS);
const NO_COUNTS = new Uint16Array(0);

function postingsQuery(countsOf: (reader: RowReader) => Uint16Array): BinaryQuery<TemplateParams, PostingRow> {
  return binaryQuery('search_postings', 'spans/search_postings.sql', (reader) => ({
    word: reader.uint8(),
    segment: reader.uint64(),
    places: reader.uint16s(),
    counts: countsOf(reader),
  }));
}

/** Reads postings of words. With `counted`, also how often each document has the word, which takes as many bytes again. */
export const readPostings: BinaryQuery<SegmentRange & { words: readonly string[]; counted: boolean }, PostingRow> = (
  client,
  { counted, ...params },
  options,
) => (counted ? readCounted(client, { ...params, counted }, options) : readUncounted(client, params, options));

/** Filters of a search besides its words. */
export interface CandidateFilters extends TemplateParams {
  org_id: string;
  since_ms?: number | undefined;
  until_ms?: number | undefined;
  model?: string | undefined;
  outcome?: string | undefined;
  min_cost_usd?: number | undefined;
  max_cost_usd?: number | undefined;
  /** Set together with agent_id or tags. */
  of_traces?: true | undefined;
  agent_id?: string | undefined;
  tags?: readonly string[] | undefined;
}

export const readCandidates: BinaryQuery<CandidateFilters, { segment: number; places: Uint16Array }> = binaryQuery(
  'search_candidates',
  'spans/search_candidates.sql',
  (reader) => ({ segment: reader.uint64(), places: reader.uint16s() }),
);

export const readWaiting = defineQuery({
  name: 'search_waiting',
  file: 'spans/search_waiting.sql',
  params: z.object(time),
  row: z.object({ waiting: count }),
});

export const readUnnumbered = defineQuery({
  name: 'search_unnumbered',
  file: 'spans/search_unnumbered.sql',
  params: z.object(time),
  row: z.object({ waiting: count }),
});

const documents = { org_id: z.string(), times: z.array(z.string()), docs: z.array(uint64) };

/** Position of a span in the ingest log. */
const place = { log_seq: z.string(), log_index: z.int(), log_sub: z.int() };
const found = z.object({
  /** Number of the document. */
  doc: z.string(),
  span_id: z.string(),
  trace_id: z.string(),
  name: z.string(),
  /** Bits of SPAN_FLAGS; 0 if neither they nor the name are known. */
  flags: z.int(),
  model: z.string(),
  started_ms: count,
  ...place,
  prompt: z.string(),
  response: z.string(),
});

/** Columns that the rows of both kinds of searches have. */
export type FoundRow = z.output<typeof found>;
/** A found document with its score. */
export type ScoredRow = Omit<FoundRow, 'prompt' | 'response' | 'doc'> & { score: number };

export const readTexts = defineQuery({
  name: 'search_texts',
  file: 'spans/search_texts.sql',
  params: z.object(documents),
  row: found,
});

export const readSnippets = defineQuery({
  name: 'search_snippets',
  file: 'spans/search_snippets.sql',
  params: z.object({
    ...documents,
    /** Bytes up to which texts are whole, and characters of a text that is not. */
    bytes: z.int(),
    chars: z.int(),
  }),
  row: found.extend({
    outcome: z.enum(['success', 'error', 'timeout']),
    cost_usd: z.number(),
    started_at: z.string(),
  }),
});
export type SnippetRow = Awaited<ReturnType<typeof readSnippets>>[number];

export const readAgents = defineQuery({
  name: 'search_agents',
  file: 'spans/search_agents.sql',
  params: z.object({ org_id: z.string(), trace_ids: z.array(z.string()) }),
  row: z.object({ trace_id: z.string(), agent_id: z.string() }),
});

/** Names and agents of texts that do not know the names of their spans. */
export const readPlaces = defineQuery({
  name: 'search_places',
  file: 'spans/search_places.sql',
  params: z.object({
    org_id: z.string(),
    times: z.array(z.string()),
    trace_ids: z.array(z.string()),
    seqs: z.array(uint64),
    indexes: z.array(z.int()),
    subs: z.array(z.int()),
  }),
  row: z.object({ ...place, trace_id: z.string(), name: z.string(), agent_id: z.string() }),
});
