// Restores staged texts of cold storage to span_texts, a group at a time. Objects hold no words, so a
// restore splits the texts again; the text mover makes postings of the words and gives the texts their
// document numbers later.
//
// Guarantees: each text is restored once, also after a crash at any point, if endUnpacks is called
// before the task is staged again: a statement leaves out what is there. A group has a bounded number
// of rows and bytes, in this process and in the engine.
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { ClickHouse } from '../client/client.ts';
import { type BlockColumn, type Cells, encodeBlock } from '../client/native_block.ts';
import { Pauses } from '../client/pauses.ts';
import { NAMES, PLACE } from './cold_columns.ts';

/** Order in which the texts of a task are restored, which is the order of the table. */
const KEY = `started_at, span_id, ${PLACE}`;
const keyOf = (name: string): string =>
  `(fromUnixTimestamp64Milli({${name}_ms:Int64}, 'UTC'), {${name}_span:String}, {${name}_partition:UInt16}, {${name}_seq:UInt64}, {${name}_index:UInt32}, {${name}_sub:UInt32})`;
const AFTER = `org_id = {org_id:String} AND started_at >= fromUnixTimestamp64Milli({after_ms:Int64}, 'UTC') AND (${KEY}) > ${keyOf('after')}`;
/** Texts of the organization that began in the time of a group. */
const OF_GROUP = `org_id = {org_id:String} AND started_at >= fromUnixTimestamp64Milli({after_ms:Int64}, 'UTC') AND started_at <= fromUnixTimestamp64Milli({last_ms:Int64}, 'UTC')`;
/** Staged texts of a group that are to be restored. */
const PENDING = `task = {task:String} AND ${OF_GROUP} AND ${AFTER} AND (${KEY}) <= ${keyOf('last')}
  AND (${PLACE}) NOT IN (SELECT ${PLACE} FROM span_texts WHERE ${OF_GROUP})
  AND (${PLACE}) NOT IN (SELECT ${PLACE} FROM span_texts_recent WHERE ${OF_GROUP})
  AND (${PLACE}) IN (SELECT ${PLACE} FROM spans WHERE ${OF_GROUP})`;

/** Words of a text on the wire. */
const WORDS: readonly BlockColumn[] = [
  { name: 'partition', type: 'UInt16' },
  { name: 'log_seq', type: 'UInt64' },
  { name: 'log_index', type: 'UInt32' },
  { name: 'log_sub', type: 'UInt32' },
  { name: 'words', type: 'String' },
  { name: 'word_count', type: 'UInt32' },
];
const WORDS_STRUCTURE = WORDS.map(({ name, type }) => `${name} ${type}`).join(', ');
/** Maximum texts that are restored at a time: one part of the searched table. */
const GROUP_ROWS_MAX = 20_000;
/** Maximum bytes of the texts that are restored at a time, unless a single text is larger. */
const GROUP_BYTES_MAX = 16 * 1024 * 1024;

const READ_MS = 60_000;
const INSERT_MS = 600_000;

const count = z.coerce.number();
const place = { partition: z.int(), log_seq: count, log_index: z.int(), log_sub: z.int() };
const textKey = z.object({ started_ms: count, span_id: z.string(), ...place });
/** Position of a staged text in the order in which texts are restored. */
type TextKey = z.infer<typeof textKey>;
/** A position before every text: no time is before 1900. */
const START: TextKey = {
  started_ms: Date.UTC(1900, 0, 1),
  span_id: '',
  partition: 0,
  log_seq: 0,
  log_index: 0,
  log_sub: 0,
};

/** Returns the parameters of keyOf. */
const keyParams = (name: string, key: TextKey): Record<string, unknown> => ({
  [`${name}_ms`]: key.started_ms,
  [`${name}_span`]: key.span_id,
  [`${name}_partition`]: key.partition,
  [`${name}_seq`]: key.log_seq,
  [`${name}_index`]: key.log_index,
  [`${name}_sub`]: key.log_sub,
});

const stagedText = z.object({ ...place, prompt: z.string(), response: z.string() });

/** Returns the words of a prompt and response, and their number. */
export type WordsOf = (prompt: string, response: string) => { words: string; dl: number };

/** Returns the prefix of the ids of the statements that restore the texts of a task. */
const unpacksOf = (task: string): string => `unpack-${task}-`;

/**
 * Restores the texts of a task to the table that is read, with the words from which the text mover
 * makes them searchable. Skips texts that are there already or on their way, and texts whose span
 * is gone.
 * @param restoredOn day from which the age of the texts counts; @param dropOn hint for the
 * partition
 * @param wordsOf returns the words of a prompt and response, and their number
 * @returns the number of restored texts
 */
export async function unpackTexts(
  client: ClickHouse,
  { task, org_id }: { task: string; org_id: string },
  stamps: { restoredOn: number; dropOn: number },
  wordsOf: WordsOf,
  signal: AbortSignal,
): Promise<number> {
  const pauses = new Pauses(signal);
  let restored = 0;
  for (let after = START; ;) {
    signal.throwIfAborted();
    const group = { task, org_id, ...keyParams('after', after) };
    const last = await groupEnd(client, group);
    if (last === null) return restored;
    restored += await unpackGroup(client, task, { ...group, ...keyParams('last', last) }, stamps, wordsOf, pauses);
    after = last;
  }
}

/** Returns the last of the texts after a given one that are restored together; null at the end. */
async function groupEnd(client: ClickHouse, after: Record<string, unknown>): Promise<TextKey | null> {
  const rows = await read(
    client,
    'cold_group',
    `SELECT toUnixTimestamp64Milli(started_at) AS started_ms, span_id, ${PLACE}
       FROM (
         SELECT *, row_number() OVER position AS nth, sum(bytes) OVER position AS bytes_in_all
         FROM (
           SELECT ${KEY}, length(prompt) + length(response) AS bytes FROM cold_staging
           WHERE task = {task:String} AND ${AFTER} ORDER BY ${KEY} LIMIT {rows:UInt32}
         )
         WINDOW position AS (ORDER BY ${KEY} ROWS UNBOUNDED PRECEDING)
       )
       WHERE nth = 1 OR bytes_in_all <= {bytes:UInt64} ORDER BY ${KEY.split(', ').join(' DESC, ')} DESC LIMIT 1`,
    { ...after, rows: GROUP_ROWS_MAX, bytes: GROUP_BYTES_MAX },
  );
  return z.array(textKey).parse(rows)[0] ?? null;
}

async function unpackGroup(
  client: ClickHouse,
  task: string,
  group: Record<string, unknown>,
  stamps: { restoredOn: number; dropOn: number },
  wordsOf: WordsOf,
  pauses: Pauses,
): Promise<number> {
  const rows = await read(
    client,
    'cold_group_texts',
    `SELECT ${PLACE}, prompt, response FROM cold_staging WHERE ${PENDING} LIMIT 1 BY ${PLACE} SETTINGS max_threads = 1, max_block_size = 1024`,
    group,
  );
  if (rows.length === 0) return 0;
  const words: Cells[] = [];
  for (const { partition, log_seq, log_index, log_sub, prompt, response } of z.array(stagedText).parse(rows)) {
    const { words: joined, dl } = wordsOf(prompt, response);
    words.push([partition, log_seq, log_index, log_sub, joined, dl]);
    await pauses.give();
  }
  const { written_rows } = await client.execute({
    name: 'cold_unpack',
    // The engine copies the texts itself, byte for byte. The conditions are repeated: another statement
    // for this task may have begun late.
    sql: `INSERT INTO span_texts (${NAMES}, words, drop_on, restored_on)
        SELECT ${NAMES.replace(' dl,', ' word_count,')}, words, toDate({drop_on:UInt16}), toDate({restored_on:UInt16})
        FROM (SELECT ${NAMES} FROM cold_staging WHERE ${PENDING} LIMIT 1 BY ${PLACE}) AS staged
        INNER JOIN (SELECT * FROM input('${WORDS_STRUCTURE}')) AS split USING (${PLACE})
        SETTINGS max_threads = 1, max_insert_threads = 1, max_block_size = 1024, min_insert_block_size_rows = ${GROUP_ROWS_MAX}, min_insert_block_size_bytes = ${GROUP_BYTES_MAX * 4}
        FORMAT Native`,
    params: { ...group, drop_on: stamps.dropOn, restored_on: stamps.restoredOn },
    body: encodeBlock(WORDS, words),
    query_id: `${unpacksOf(task)}${randomUUID()}`,
    timeoutMs: INSERT_MS,
  });
  return written_rows;
}

/**
 * Cancels the statements that a former worker left running for a task. Beside a running one, a
 * second one would restore the same texts twice.
 */
export async function endUnpacks(client: ClickHouse, task: string): Promise<void> {
  await client.execute({
    name: 'cold_end_unpacks',
    sql: 'KILL QUERY WHERE current_database = currentDatabase() AND startsWith(query_id, {prefix:String}) SYNC',
    params: { prefix: unpacksOf(task) },
    timeoutMs: INSERT_MS,
  });
}

function read(client: ClickHouse, name: string, sql: string, params: Record<string, unknown>): Promise<unknown[]> {
  return client.rows<unknown>({ name, sql, params, timeoutMs: READ_MS });
}
