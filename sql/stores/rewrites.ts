// Permanent deletion of rows: every part that holds one is rewritten without it, so afterwards no
// part that is read or merged holds the row. Rows that a lightweight delete masked earlier are
// deleted too. Everything may be repeated. The engine removes replaced parts from the disk later
// (old_parts_lifetime, 8 minutes). One statement rewrites one partition of one table.
import { setTimeout as sleep } from 'node:timers/promises';
import { ClickHouseError } from '@clickhouse/client';
import { z } from 'zod';
import type { ClickHouse } from '../client/client.ts';

const TIMEOUT_MS = 110_000;
const POLL_MS = 50;
/** Time after which a mutation that keeps failing is cancelled. */
const FAILING_MS_MAX = 60_000;

/**
 * Error codes of a part that a merge or a drop has removed meanwhile (232 NO_SUCH_DATA_PART, 233
 * BAD_DATA_PART_NAME).
 */
const GONE_CODES = new Set(['232', '233']);

/** Settings of a read that includes masked rows, which projections lack. */
export const BELOW_MASK = 'SETTINGS apply_deleted_mask = 0, optimize_use_projections = 0';

/** Rows of a table, as a condition over its columns. */
export interface Rows {
  table: string;
  where: string;
  params: Record<string, unknown>;
  /**
   * Text that occurs in this condition, with its parameters filled in, and in no other mutation's.
   */
  mine: string;
}

/**
 * Deletes rows. Resolves when no part holds any of them.
 * @throws Error when the engine cannot carry it out; the mutation is cancelled first
 */
export async function deleteRows(
  client: ClickHouse,
  { table, where, params, mine }: Rows,
  signal: AbortSignal,
): Promise<void> {
  const run = (name: string, sql: string, given: Record<string, unknown>): Promise<unknown> =>
    client.execute({ name, sql, params: given, timeoutMs: TIMEOUT_MS });
  for (const partition of await partitionsOf(client, { table, where, params }))
    await run(
      'erase_rows',
      `ALTER TABLE ${table} DELETE${inPartition(partition)} WHERE ${where} SETTINGS mutations_sync = 0, allow_nondeterministic_mutations = 1`,
      params,
    );
  // This also waits for mutations that a dead worker started.
  await waitForMutations(client, table, mine, signal);
  const masked = await partitionsOf(client, { table, where, params }, BELOW_MASK);
  if (masked.length === 0) return;
  for (const partition of masked)
    await run(
      'erase_masked',
      `ALTER TABLE ${table} APPLY DELETED MASK${inPartition(partition)} SETTINGS mutations_sync = 0`,
      {},
    );
  await waitForMutations(client, table, 'APPLY DELETED MASK', signal);
}

/**
 * Resolves when no mutation of the table whose text contains `mine` is running.
 * @throws Error when one cannot be carried out; it is cancelled first
 */
export async function waitForMutations(
  client: ClickHouse,
  table: string,
  mine: string,
  signal: AbortSignal,
): Promise<void> {
  let failingSince: number | null = null;
  for (;;) {
    const rows = await client.rows<unknown>({
      name: 'erase_mutations',
      sql: 'SELECT mutation_id, latest_fail_reason AS reason FROM system.mutations WHERE database = currentDatabase() AND table = {table:String} AND NOT is_done AND position(command, {mine:String}) > 0',
      params: { table, mine },
      timeoutMs: TIMEOUT_MS,
    });
    const open = z.array(z.object({ mutation_id: z.string(), reason: z.string() })).parse(rows);
    if (open.length === 0) return;
    const failing = open.find(({ reason }) => reason !== '');
    failingSince = failing === undefined ? null : (failingSince ?? performance.now());
    if (failing !== undefined && performance.now() - (failingSince ?? Infinity) > FAILING_MS_MAX) {
      // A failing mutation blocks every later one.
      await client.execute({
        name: 'erase_give_up',
        sql: 'KILL MUTATION WHERE database = currentDatabase() AND table = {table:String} AND mutation_id = {id:String} SYNC',
        params: { table, id: failing.mutation_id },
        timeoutMs: TIMEOUT_MS,
      });
      throw new Error(`rows of ${table} cannot be erased: ${failing.reason}`);
    }
    await sleep(POLL_MS, undefined, { signal });
  }
}

/**
 * Resolves when the moves of texts that are running now have ended. Everything that they read
 * before is then in the other table.
 */
export async function waitForMoves(client: ClickHouse, signal: AbortSignal): Promise<void> {
  const running = async (): Promise<string[]> => {
    const rows = await client.rows<unknown>({
      name: 'erase_moves',
      sql: "SELECT query_id FROM system.processes WHERE current_database = currentDatabase() AND query_id LIKE 'move-%'",
      params: {},
      timeoutMs: TIMEOUT_MS,
    });
    return z
      .array(z.object({ query_id: z.string() }))
      .parse(rows)
      .map(({ query_id }) => query_id);
  };
  for (let left = await running(); left.length > 0;) {
    await sleep(POLL_MS, undefined, { signal });
    const now = new Set(await running());
    left = left.filter((query_id) => now.has(query_id));
  }
}

/**
 * Drops a part of a table.
 * @returns false when the part no longer exists
 */
export async function dropPart(client: ClickHouse, table: string, part: string): Promise<boolean> {
  try {
    await client.execute({
      name: 'drop_part',
      sql: `ALTER TABLE ${table} DROP PART {part:String}`,
      params: { part },
      timeoutMs: TIMEOUT_MS,
    });
    return true;
  } catch (error) {
    if (error instanceof ClickHouseError && GONE_CODES.has(error.code)) return false;
    throw error;
  }
}

async function partitionsOf(
  client: ClickHouse,
  { table, where, params }: Omit<Rows, 'mine'>,
  settings = '',
): Promise<string[]> {
  const rows = await client.rows<unknown>({
    name: 'erase_partitions',
    sql: `SELECT DISTINCT _partition_id AS id FROM ${table} WHERE ${where} ORDER BY id ${settings}`,
    params,
    timeoutMs: TIMEOUT_MS,
  });
  return z
    .array(z.object({ id: z.string() }))
    .parse(rows)
    .map(({ id }) => id);
}

/**
 * Returns the clause for one partition. The only partition of an unpartitioned table has the id
 * `all`.
 */
function inPartition(id: string): string {
  if (!/^[0-9A-Za-z_-]+$/.test(id)) throw new Error(`${id} is no id of a partition`);
  return id === 'all' ? '' : ` IN PARTITION ID '${id}'`;
}
