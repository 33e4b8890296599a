// Statements that land rows, and reads of what has landed. Log positions are the store's: the
// JetStream sequence plus the log's base. Every write may be repeated. A caller that did not get an
// answer reads back what was written.
import { z } from 'zod';
import type { ClickHouse, Priority } from '../client/client.ts';
import { defineQuery } from '../client/query.ts';
import { type OwnedPartition, ownedParam } from './landing_fences.ts';
import { FROM_POSITIONS, type PartitionFrom, positionParams, positionsShape } from './positions.ts';
import { ANY_TIMES, landingStatement, SPAN_TEXTS, type TableSpec } from './landing_tables.ts';
import { DOC, FENCES_MAX, MOVER_FENCE, type MoverStatement, moverParams } from './postings.ts';

/** A landing that takes longer than this is given up; the landing reads back what it wrote. */
const INSERT_TIMEOUT_MS = 30_000;
const TIMEOUT_MS = 60_000;

const uint64 = z.coerce.number();
const fromPosition = z.object({ partition: z.int(), from: z.int() });
const position = z.object({ partition: z.int(), log_seq: uint64, log_index: z.int(), log_sub: z.int() });

/** Tables whose inserts are synced one by one, or by one sync of the disk before a checkpoint. */
const SYNCED_TABLES = [
  'spans',
  'span_texts',
  'span_texts_recent',
  'span_words',
  'traces',
  'trace_lookup',
  'usage_events',
  'agent_activity',
  'judge_scores',
] as const;

export const readLandedUsage = defineQuery({
  name: 'landed_usage',
  file: 'landing/landed_usage.sql',
  params: fromPosition,
  row: z.object({ seq: z.string() }),
  timeoutMs: TIMEOUT_MS,
});

export const readLandedTraces = defineQuery({
  name: 'landed_traces',
  file: 'landing/landed_traces.sql',
  params: fromPosition,
  row: z.object({ org_id: z.string(), trace_id: z.string(), version: uint64 }),
  timeoutMs: TIMEOUT_MS,
});

export const readLandedSpans = defineQuery({
  name: 'landed_spans',
  file: 'landing/landed_spans.sql',
  params: positionsShape,
  row: position,
  timeoutMs: TIMEOUT_MS,
});

export const readLandedTexts = defineQuery({
  name: 'landed_span_texts_recent',
  file: 'landing/landed_texts.sql',
  params: positionsShape,
  row: position,
  timeoutMs: TIMEOUT_MS,
});

const newestPositionQuery = defineQuery({
  name: 'newest_position',
  file: 'landing/newest_position.sql',
  params: z.object({}),
  row: z.object({ seq: uint64 }),
  timeoutMs: TIMEOUT_MS,
});

/** Part of span_texts_recent. */
export const readRecentParts = defineQuery({
  name: 'recent_parts',
  file: 'landing/recent_parts.sql',
  params: z.object({}),
  row: z.object({
    name: z.string(),
    rows: uint64,
    bytes: uint64,
    /** Seconds since the part was written. */
    age: uint64,
  }),
  timeoutMs: TIMEOUT_MS,
});

/** Returns the newest log position that any table holds; 0 where all are empty. */
export async function readNewestPosition(client: ClickHouse): Promise<number> {
  return (await newestPositionQuery(client, {}))[0]?.seq ?? 0;
}

/**
 * Lands rows of a table: all of them, unless it fails.
 * @param body the rows as landingBody returns them; blocks follow each other
 * @param owned the partitions of the rows, each with the epoch of its owner
 * @throws ClickHouseError that classifyStoreError calls `fenced`: a partition has a newer owner, the statement was
 * given up, or the server has just started and knows no fences (completeFences)
 */
export async function landRows(
  client: ClickHouse,
  spec: TableSpec,
  {
    body,
    owned,
    queryId,
    priority,
  }: { body: string | readonly Buffer[]; owned: readonly OwnedPartition[]; queryId: string; priority: Priority },
): Promise<void> {
  const name = `land_${spec.table}`;
  await client.execute({
    name,
    sql: landingStatement(spec),
    body,
    query_id: queryId,
    priority,
    timeoutMs: INSERT_TIMEOUT_MS,
    // The constraint of the table reads the epochs here.
    settings: { log_comment: `${name} ${ownedParam(owned)}` },
  });
}

/** Writes when agents were last heard of, in milliseconds since the epoch. */
export async function writeAgentActivity(
  client: ClickHouse,
  heard: readonly { org_id: string; agent_id: string; last_seen_at: number }[],
): Promise<void> {
  await client.execute({
    name: 'write_activity',
    sql: `INSERT INTO agent_activity (org_id, agent_id, last_seen_at, landed_at) SELECT org_id, agent_id, fromUnixTimestamp64Milli(last_seen_at, 'UTC'), now64(3, 'UTC')
      FROM input('org_id String, agent_id String, last_seen_at Int64') FORMAT JSONCompactEachRow`,
    body: heard
      .map(({ org_id, agent_id, last_seen_at }) => JSON.stringify([org_id, agent_id, last_seen_at]))
      .join('\n'),
    timeoutMs: INSERT_TIMEOUT_MS,
  });
}

/** Writes the activity of agents again from the usage rows of partitions, of each from its position on. */
export async function repairAgentActivity(client: ClickHouse, above: readonly PartitionFrom[]): Promise<void> {
  await client.execute({
    name: 'mend_activity',
    sql: `INSERT INTO agent_activity (org_id, agent_id, last_seen_at, landed_at)
      SELECT org_id, agent_id, max(last_received_at), now64(3, 'UTC') FROM usage_events
      WHERE ${FROM_POSITIONS} AND agent_id != '' GROUP BY org_id, agent_id`,
    params: positionParams(above),
    timeoutMs: TIMEOUT_MS,
  });
}

/** Writes the rows of trace_lookup again for the spans of partitions, of each from its position on. */
export async function repairTraceLookup(client: ClickHouse, above: readonly PartitionFrom[]): Promise<void> {
  await client.execute({
    name: 'mend_lookup',
    sql: `INSERT INTO trace_lookup (trace_key, org_id, first_at, last_at)
      SELECT sipHash64(trace_id), org_id, min(started_at), max(started_at) FROM spans
      WHERE ${FROM_POSITIONS} GROUP BY trace_id, org_id`,
    params: positionParams(above),
    timeoutMs: TIMEOUT_MS,
  });
}

/** Sets whether the store syncs every insert to the disk before it answers. */
export async function setInsertSync(client: ClickHouse, each: boolean): Promise<void> {
  const on = each ? '1' : '0';
  for (const table of SYNCED_TABLES)
    await client.execute({
      name: 'sync_inserts',
      sql: `ALTER TABLE ${table} MODIFY SETTING fsync_after_insert = ${on}, fsync_part_directory = ${on}`,
      params: {},
      timeoutMs: TIMEOUT_MS,
    });
}

/** Columns that a move copies: the words go into postings. */
const MOVED_COLUMNS = SPAN_TEXTS.block
  .map(({ name }) => name)
  .filter((name) => name !== 'words')
  .join(', ');

/**
 * Copies the texts of parts of span_texts_recent that are not in span_texts yet, with their document
 * numbers. Copies nothing when the epoch is not the newest of the text mover's fence. The engine
 * holds no more positions in memory than the parts have rows, however many texts landed after the
 * oldest of them.
 * @param rows number of rows of the parts
 * @returns the number of copied texts
 */
export async function moveTexts(
  client: ClickHouse,
  { rows, ...statement }: MoverStatement & { rows: number },
): Promise<number> {
  const place = 'partition, log_seq, log_index, log_sub';
  const { written_rows } = await client.execute({
    name: 'move_texts',
    sql: `INSERT INTO span_texts (${MOVED_COLUMNS}, doc) SELECT ${MOVED_COLUMNS}, ${DOC} FROM span_texts_recent
      WHERE _part IN {parts:Array(String)} AND ${MOVER_FENCE}
        AND (${place}) NOT IN (
          SELECT ${place} FROM span_texts
          WHERE log_seq >= (SELECT if(count() = 0, 18446744073709551615, min(log_seq)) FROM span_texts_recent WHERE _part IN {parts:Array(String)})
            AND (${place}) IN (SELECT ${place} FROM span_texts_recent WHERE _part IN {parts:Array(String)})
        )
      SETTINGS max_threads = 1, max_insert_threads = 1, max_block_size = 1000000, min_insert_block_size_rows = 1000000, min_insert_block_size_bytes = 536870912, max_rows_in_set = ${Math.max(rows, FENCES_MAX)}, materialize_statistics_on_insert = 1, ${ANY_TIMES}`,
    params: moverParams(statement),
    query_id: statement.queryId,
    timeoutMs: TIMEOUT_MS,
  });
  return written_rows;
}

/**
 * Drops parts of span_texts_recent. One that is missing fails the statement; those before it are
 * dropped then.
 */
export async function dropRecentParts(client: ClickHouse, names: readonly string[]): Promise<void> {
  await client.execute({
    name: 'drop_recent_parts',
    sql: `ALTER TABLE span_texts_recent ${names.map((_, index) => `DROP PART {part_${index}:String}`).join(', ')}`,
    params: Object.fromEntries(names.map((name, index) => [`part_${index}`, name])),
    timeoutMs: TIMEOUT_MS,
  });
}
