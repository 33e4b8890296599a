// Statements that make texts searchable: postings of their words (span_words), then their document
// numbers (span_texts.doc). A document number is 65536 times its segment plus its place; the caller
// never gives a number twice. Each statement does nothing unless the epoch is the newest of the text
// mover's fence. Also removes places that no document has, and remembers up to which epoch.
import { z } from 'zod';
import type { ClickHouse } from '../client/client.ts';
import { defineQuery } from '../client/query.ts';
import { FENCE, MOVER_PARTITION, ownedParam } from './landing_fences.ts';
import { ANY_TIMES } from './landing_tables.ts';

const TIMEOUT_MS = 60_000;
/** Timeout of a search for orphaned places: a million documents take a second or two. */
const SEARCH_TIMEOUT_MS = 110_000;
/** Maximum number of fences, one for each partition, which a statement holds in a set. */
export const FENCES_MAX = 65_536;

/**
 * Groups that were written to the disk and joined again might have the words of a text apart. Too many
 * of them fail, and the mover takes fewer texts.
 */
const IN_MEMORY = 'max_bytes_before_external_group_by = 0, max_bytes_ratio_before_external_group_by = 0';
/** Texts that a statement splits at a time: their words take some 30 times as many bytes as memory. */
const SPLIT_ROWS = 2048;

/** Partition of the rows of landing_fences that say how far places were swept. */
const SWEPT_PARTITION = 65_533;
/** Text in every mutation of this module, and in no other's. */
const MUTATION_MARK = 'text-numbers-';

/** Part of a table of texts whose rows get document numbers. */
export interface NumberedPart {
  name: string;
  /** Number of the row at its beginning; the others follow. */
  first: bigint;
}

/** Consecutive document numbers. */
export interface NumberRange {
  from: bigint;
  /** First number after the range. */
  until: bigint;
}

/** A statement of the text mover. */
export interface MoverStatement {
  parts: readonly NumberedPart[];
  epoch: number;
  queryId: string;
}

/** Expression for the document number of a row of the given parts. */
export const DOC = 'transform(_part, {parts:Array(String)}, {firsts:Array(UInt64)}, toUInt64(0)) + _part_offset';

/** Returns the parameters that DOC and the mover's fence take. */
export const moverParams = ({ parts, epoch, queryId }: MoverStatement): Record<string, unknown> => ({
  parts: parts.map(({ name }) => name),
  firsts: parts.map(({ first }) => first),
  owned: ownedParam([[MOVER_PARTITION, epoch]]),
  statement: queryId,
  mover: MOVER_PARTITION,
});

/** Condition for the newest epoch of the text mover. */
export const MOVER_FENCE = `has(${FENCE}, {mover:UInt16})`;

/** Condition for a text of span_texts that has words and no document number yet. */
const UNNUMBERED = 'doc = 0 AND dl > 0';

const count = z.coerce.number();
const uint64 = z.coerce.bigint();

/** Active parts of a table. */
export const readParts = defineQuery({
  name: 'part_rows',
  file: 'landing/part_rows.sql',
  params: z.object({ table: z.enum(['span_texts', 'span_texts_recent']) }),
  row: z.object({ name: z.string(), rows: count }),
  timeoutMs: TIMEOUT_MS,
});

const textWeeksQuery = defineQuery({
  name: 'text_weeks',
  file: 'landing/text_weeks.sql',
  params: z.object({ table: z.enum(['span_texts', 'span_texts_recent']), parts: z.array(z.string()) }),
  row: z.object({ week: z.string() }),
  timeoutMs: TIMEOUT_MS,
});

const olderCandidatesQuery = defineQuery({
  name: 'older_part_candidates',
  file: 'landing/older_part_candidates.sql',
  params: z.object({}),
  row: z.object({ name: z.string() }),
  timeoutMs: TIMEOUT_MS,
});

const olderPart = z.object({
  name: z.string(),
  rows: count,
  /** Uncompressed, of all columns. */
  bytes: count,
  /** Number of texts that have words and no document number. */
  texts: count,
  /** 1 while the engine merges the part into another one. */
  merging: z.int(),
});

const olderPartsQuery = defineQuery({
  name: 'older_parts',
  file: 'landing/older_parts.sql',
  params: z.object({ parts: z.array(z.string()) }),
  row: olderPart,
  timeoutMs: TIMEOUT_MS,
});

const postedTextsQuery = defineQuery({
  name: 'posted_texts',
  file: 'landing/posted_texts.sql',
  params: z.object({ parts: z.array(z.string()), firsts: z.array(z.bigint()), from: z.bigint(), until: z.bigint() }),
  row: z.object({ texts: count, posted: count }),
  timeoutMs: TIMEOUT_MS,
});

/** Ranges of the numbers that texts of a part will get, each of one segment. */
export const readOlderSlices = defineQuery({
  name: 'older_slices',
  file: 'landing/older_slices.sql',
  params: z.object({ part: z.string(), first: z.bigint(), slice_rows: z.int() }),
  row: z.object({ from: uint64, until: uint64 }),
  timeoutMs: TIMEOUT_MS,
});

const numberedQuery = defineQuery({
  name: 'older_numbered',
  file: 'landing/older_numbered.sql',
  params: z.object({ from: z.bigint(), until: z.bigint() }),
  row: z.object({ texts: count }),
  timeoutMs: TIMEOUT_MS,
});

const moverMutationsQuery = defineQuery({
  name: 'mover_mutations',
  file: 'landing/mover_mutations.sql',
  params: z.object({ mark: z.string() }),
  row: z.object({ table: z.string(), mutation_id: z.string(), reason: z.string() }),
  timeoutMs: TIMEOUT_MS,
});

const sweptEpochQuery = defineQuery({
  name: 'swept_epoch',
  file: 'landing/swept_epoch.sql',
  params: z.object({ partition: z.int() }),
  row: z.object({ epoch: count }),
  timeoutMs: TIMEOUT_MS,
});

const unsweptSegmentsQuery = defineQuery({
  name: 'unswept_segments',
  file: 'landing/unswept_segments.sql',
  params: z.object({ from: z.bigint(), until: z.bigint() }),
  row: z.object({ segment: uint64 }),
  timeoutMs: TIMEOUT_MS,
});

const orphanedSegmentsQuery = defineQuery({
  name: 'orphaned_segments',
  file: 'landing/orphaned_segments.sql',
  params: z.object({ segments: z.array(z.bigint()), from: z.bigint(), until: z.bigint() }),
  row: z.object({ segment: uint64 }),
  timeoutMs: SEARCH_TIMEOUT_MS,
});

/**
 * Writes the postings of the texts in parts that have words and a number of the range, which must be
 * of one segment. Of span_texts it takes the texts without a document number. May leave places that
 * no document gets.
 * @returns the number of rows written: 0 if no such text has words, if none of the parts is there any
 * more, or if the epoch is not the newest
 */
export async function writePostings(
  client: ClickHouse,
  table: 'span_texts' | 'span_texts_recent',
  { from, until }: NumberRange,
  statement: MoverStatement,
): Promise<number> {
  const weeks = await textWeeksQuery(client, { table, parts: statement.parts.map(({ name }) => name) });
  // A group by the word alone is cheaper, and texts of different weeks seldom move together. Rows of a
  // part do not change under its name, so the week is still theirs in the next statement.
  const [week, key] = weeks.length === 1 ? ['{week:Date}', 'word'] : ['toMonday(drop_on)', 'week, word'];
  const { written_rows } = await client.execute({
    name: 'write_postings',
    // Grouping by the segment as well would take twice as long. The engine would look for equal keys
    // in the rows to insert, which has none.
    sql: `INSERT INTO span_words (week, word, segment, places, counts)
      SELECT week, word, {segment:UInt64}, arrayCompact(occurrences),
        arrayMap(same -> toUInt16(least(length(same), 65535)), arraySplit((place, before) -> place != before, occurrences, arrayShiftRight(occurrences, 1)))
      FROM (
        SELECT ${week} AS week, cityHash64(arrayJoin(splitByChar(' ', words))) AS word, groupArray(place) AS occurrences
        FROM (
          SELECT drop_on, words, ${DOC} AS number, toUInt16(bitAnd(number, 65535)) AS place
          FROM ${table}
          WHERE _part IN {parts:Array(String)} AND words != '' AND number >= {from:UInt64} AND number < {until:UInt64} AND ${MOVER_FENCE}
            ${table === 'span_texts' ? `AND ${UNNUMBERED}` : ''}
        )
        GROUP BY ${key}
      )
      SETTINGS max_threads = 1, max_insert_threads = 1, max_block_size = ${SPLIT_ROWS}, min_insert_block_size_rows = 10000000, min_insert_block_size_bytes = 536870912, optimize_on_insert = 0, materialize_statistics_on_insert = 1, max_rows_in_set = ${FENCES_MAX}, ${IN_MEMORY}, ${ANY_TIMES}`,
    params: { ...moverParams(statement), segment: from >> 16n, from, until, week: weeks[0]?.week ?? '1970-01-01' },
    query_id: statement.queryId,
    timeoutMs: TIMEOUT_MS,
  });
  return written_rows;
}

/**
 * Returns true if every text of parts of span_texts_recent that has words and a number of the range,
 * which must be of one segment, has postings.
 */
export async function arePosted(
  client: ClickHouse,
  parts: readonly NumberedPart[],
  range: NumberRange,
): Promise<boolean> {
  const names = parts.map(({ name }) => name);
  const [row] = await postedTextsQuery(client, { parts: names, firsts: parts.map(({ first }) => first), ...range });
  return row !== undefined && row.texts === row.posted;
}

/**
 * Starts to give the texts of parts of span_texts that have words their document numbers, as a
 * mutation in the engine's background. It leaves out parts that it does not find by their names, and
 * does nothing once a newer epoch is fenced.
 */
export async function numberTexts(client: ClickHouse, statement: MoverStatement): Promise<void> {
  await client.execute({
    name: 'number_texts',
    sql: `ALTER TABLE span_texts UPDATE doc = ${DOC}, words = '', reps = [], stop_reps = []
      WHERE _part IN {parts:Array(String)} AND ${UNNUMBERED} AND ${MOVER_FENCE} AND {mark:String} != ''
      SETTINGS mutations_sync = 0, allow_nondeterministic_mutations = 1`,
    params: { ...moverParams(statement), mark: MUTATION_MARK },
    timeoutMs: TIMEOUT_MS,
  });
}

/**
 * Returns the parts of span_texts with texts that have words and no document number, the newest week
 * first. Costs little while there is none.
 */
export async function readOlderParts(client: ClickHouse): Promise<z.output<typeof olderPart>[]> {
  const parts = (await olderCandidatesQuery(client, {})).map(({ name }) => name);
  return parts.length === 0 ? [] : olderPartsQuery(client, { parts });
}

/** Returns the number of texts with words that have a document number of the range. */
export async function readNumbered(client: ClickHouse, range: NumberRange): Promise<number> {
  return (await numberedQuery(client, { ...range }))[0]?.texts ?? 0;
}

/** An unfinished mutation, with the reason of its last failure; empty if it has not failed. */
export interface OpenMutation {
  table: string;
  mutation_id: string;
  reason: string;
}

/** Returns the unfinished mutations of numberTexts and removeOrphans, of all processes. */
export function readMoverMutations(client: ClickHouse): Promise<OpenMutation[]> {
  return moverMutationsQuery(client, { mark: MUTATION_MARK });
}

export async function cancelMutation(client: ClickHouse, { table, mutation_id }: OpenMutation): Promise<void> {
  await client.execute({
    name: 'cancel_mover_mutation',
    sql: 'KILL MUTATION WHERE database = currentDatabase() AND table = {table:String} AND mutation_id = {id:String} SYNC',
    params: { table, id: mutation_id },
    timeoutMs: TIMEOUT_MS,
  });
}

/** Returns the epoch before which no place lacks its document; 0 if none was swept. */
export async function readSweptEpoch(client: ClickHouse): Promise<number> {
  return (await sweptEpochQuery(client, { partition: SWEPT_PARTITION }))[0]?.epoch ?? 0;
}

/** Records that no place of an earlier epoch than the given one lacks its document. */
export async function writeSweptEpoch(client: ClickHouse, epoch: number, workerId: string): Promise<void> {
  await client.execute({
    name: 'write_swept_epoch',
    sql: 'INSERT INTO landing_fences (partition, epoch, worker_id) SELECT {partition:UInt16}, {epoch:UInt64}, {worker:String}',
    params: { partition: SWEPT_PARTITION, epoch, worker: workerId },
    timeoutMs: TIMEOUT_MS,
  });
}

/** Returns the segments from one to before another in which places may lack their documents. */
export async function readUnsweptSegments(client: ClickHouse, from: bigint, until: bigint): Promise<bigint[]> {
  return (await unsweptSegmentsQuery(client, { from, until })).map(({ segment }) => segment);
}

/** Returns those of the given segments, in order, that have a place which no document has. */
export async function readOrphanedSegments(client: ClickHouse, segments: readonly bigint[]): Promise<bigint[]> {
  const rows = await orphanedSegmentsQuery(client, { segments: [...segments], ...documentsOf(segments) });
  return rows.map(({ segment }) => segment);
}

/** The documents of some segments, as a bitmap. Masked ones may be among them until a merge. */
const DOCUMENTS = `(SELECT groupBitmapState(doc) FROM span_texts
    WHERE doc >= {from:UInt64} AND doc < {until:UInt64} AND bitShiftRight(doc, 16) IN {segments:Array(UInt64)})`;

/** Returns the number of documents of some segments, which are in order, as removeOrphans takes it. */
export async function countDocuments(client: ClickHouse, segments: readonly bigint[]): Promise<number> {
  // Any other count might read another projection, and masked documents are in some of them only.
  const rows = await client.rows<unknown>({
    name: 'count_documents',
    sql: `SELECT bitmapCardinality(${DOCUMENTS}) AS documents SETTINGS max_threads = 1`,
    params: { segments, ...documentsOf(segments) },
    timeoutMs: SEARCH_TIMEOUT_MS,
  });
  return z.tuple([z.object({ documents: count })]).parse(rows)[0].documents;
}

/**
 * Starts to remove the places that no document has from some segments, in order, as a mutation in the
 * engine's background. No text may get a number of these segments any more. The mutation leaves the
 * places alone where it finds another number of documents than the given one: a replica that has not
 * fetched every part of span_texts yet would remove places of documents.
 */
export async function removeOrphans(client: ClickHouse, segments: readonly bigint[], documents: number): Promise<void> {
  const hasDocument = `bitmapContains(${DOCUMENTS}, segment * 65536 + place)`;
  await client.execute({
    name: 'remove_orphans',
    sql: `ALTER TABLE span_words
      UPDATE places = arrayFilter(place -> ${hasDocument}, places), counts = arrayFilter((times, place) -> ${hasDocument}, counts, places)
        WHERE segment IN {segments:Array(UInt64)} AND bitmapCardinality(${DOCUMENTS}) = {documents:UInt64} AND {mark:String} != '',
      DELETE WHERE segment IN {segments:Array(UInt64)} AND empty(places)
      SETTINGS mutations_sync = 0, allow_nondeterministic_mutations = 1`,
    params: { segments, documents, ...documentsOf(segments), mark: MUTATION_MARK },
    timeoutMs: TIMEOUT_MS,
  });
}

/** Returns the numbers of the documents of segments, which are in order, and of those between. */
function documentsOf(segments: readonly bigint[]): NumberRange {
  return { from: (segments[0] ?? 0n) << 16n, until: ((segments.at(-1) ?? -1n) + 1n) << 16n };
}
