// Fences of landing: for each partition of the ingest log, the epoch of its owner. The tables refuse a
// landing with rows of a partition whose newest fence is above its writer's epoch: a constraint of theirs
// (migration 0052) reads fenced_epochs and given_up_statements, which are in memory and follow
// landing_fences. Takes pairs of a partition and an epoch. Three reserved partition numbers fence the text
// mover, hold the ids of statements that were given up, and remember up to which epoch the postings were
// swept.
import { z } from 'zod';
import type { ClickHouse } from '../client/client.ts';
import { defineQuery } from '../client/query.ts';

/** A partition and the epoch of the owner that writes to it. */
export type OwnedPartition = readonly [partition: number, epoch: number];

/** Fence of the text mover. The ingest log has fewer partitions. */
export const MOVER_PARTITION = 65_535;
/** Partition of the query ids of statements that were given up; the table forgets those after a day. */
const GIVEN_UP_PARTITION = 65_534;
/** Partitions from here on are reserved. */
const RESERVED_FROM = 65_533;
/** Partition of the row of fenced_epochs that says that it has all epochs of landing_fences. */
const COMPLETE_MARK = 65_532;
const TIMEOUT_MS = 60_000;

/**
 * Expression for the partitions whose newest fence has the writer's epoch. It is empty for a statement
 * that its writer has given up (giveUpStatement). Parameters: `owned`, the (partition, epoch) pairs that
 * the writer owns, and `statement`, its query id.
 */
export const FENCE = `(
  SELECT if(max(f.given_up), [], groupArrayIf(f.partition, has({owned:Array(Tuple(UInt16, UInt64))}, (f.partition, f.epoch))))
  FROM (SELECT partition, max(epoch) AS epoch, max(worker_id = {statement:String}) AS given_up FROM landing_fences GROUP BY partition) AS f
)`;

const partition = z.int();
const epoch = z.coerce.number();

const newestFencesQuery = defineQuery({
  name: 'fenced_off',
  file: 'landing/newest_fences.sql',
  params: z.object({ partitions: z.array(partition) }),
  row: z.object({ partition, newest: epoch }),
  timeoutMs: TIMEOUT_MS,
});

const nextEpochQuery = defineQuery({
  name: 'mover_epoch',
  file: 'landing/next_epoch.sql',
  params: z.object({ partition, base: z.int() }),
  row: z.object({ epoch }),
  timeoutMs: TIMEOUT_MS,
});

const rivalOwnersQuery = defineQuery({
  name: 'mover_rivals',
  file: 'landing/rival_owners.sql',
  params: z.object({ partition, epoch: z.int(), worker: z.string() }),
  row: z.object({ worker_id: z.string() }),
  timeoutMs: TIMEOUT_MS,
});

const newestEpochQuery = defineQuery({
  name: 'newest_epoch',
  file: 'landing/newest_epoch.sql',
  params: z.object({ except: partition }),
  row: z.object({ epoch }),
  timeoutMs: TIMEOUT_MS,
});

const overtakenEpochsQuery = defineQuery({
  name: 'overtaken_epochs',
  file: 'landing/overtaken_epochs.sql',
  params: z.object({ reserved: partition, mark: partition }),
  row: z.object({ partition, epoch }),
  timeoutMs: TIMEOUT_MS,
});

const runningStatementsQuery = defineQuery({
  name: 'running_statements',
  file: 'landing/running_statements.sql',
  params: z.object({ pattern: z.string() }),
  row: z.object({ query_id: z.string() }),
  timeoutMs: TIMEOUT_MS,
});

/** Returns pairs as the value of a parameter of the type Array(Tuple(UInt16, UInt64)). */
export const ownedParam = (owned: readonly OwnedPartition[]): string =>
  `[${owned.map(([number, at]) => `(${number},${at})`).join(',')}]`;

/** Returns those of the given partitions that have a newer fence than the given epoch. */
export async function readFencedOff(client: ClickHouse, owned: readonly OwnedPartition[]): Promise<number[]> {
  const rows = await newestFencesQuery(client, { partitions: owned.map(([number]) => number) });
  const newest = new Map(rows.map((row) => [row.partition, row.newest]));
  return owned.filter(([number, at]) => (newest.get(number) ?? 0) > at).map(([number]) => number);
}

/** Raises the fences of partitions. Statements of former owners that begin later are refused. */
export async function raiseFences(
  client: ClickHouse,
  owned: readonly OwnedPartition[],
  workerId: string,
): Promise<void> {
  await client.execute({
    name: 'raise_fence',
    sql: 'INSERT INTO landing_fences (partition, epoch, worker_id) SELECT o.1, o.2, {worker:String} FROM (SELECT arrayJoin({owned:Array(Tuple(UInt16, UInt64))}) AS o)',
    params: { owned: ownedParam(owned), worker: workerId },
    timeoutMs: TIMEOUT_MS,
  });
  await completeFences(client);
}

/**
 * Adds the epochs to fenced_epochs that it lacks: all of them after a start of the server, which until then
 * refuses every landing, and those of fences that were raised at the same time. After a start it also adds the
 * statements that were given up.
 */
export async function completeFences(client: ClickHouse): Promise<void> {
  const missing = await overtakenEpochsQuery(client, { reserved: RESERVED_FROM, mark: COMPLETE_MARK });
  if (missing.length === 0) return;
  // A proxy may deliver a statement of before to a server that has started since.
  if (missing.at(-1)?.partition === COMPLETE_MARK)
    await client.execute({
      name: 'complete_given_up',
      sql: 'INSERT INTO given_up_statements (statement, is_given_up) SELECT worker_id, 1 FROM landing_fences WHERE partition = {partition:UInt16}',
      params: { partition: GIVEN_UP_PARTITION },
      timeoutMs: TIMEOUT_MS,
    });
  await client.execute({
    name: 'complete_fences',
    sql: 'INSERT INTO fenced_epochs (partition, epoch, is_fenced) SELECT o.1, o.2, 1 FROM (SELECT arrayJoin({overtaken:Array(Tuple(UInt16, UInt64))}) AS o)',
    // The mark has the highest number, so it is added with the last of the others or after them.
    params: { overtaken: ownedParam(missing.map((row) => [row.partition, row.epoch])) },
    timeoutMs: TIMEOUT_MS,
  });
}

/**
 * Epochs of the mover in one shard: document numbers follow from the epoch (document_numbers.ts), and no
 * two shards may give the same number.
 */
const MOVER_EPOCHS = 2 ** 22;

/**
 * Raises the fence of the text mover.
 * @param shard place of the shard among all
 * @returns the new epoch, and the other workers that raised the fence to the same epoch at the same
 * time
 */
export async function raiseMoverFence(
  client: ClickHouse,
  workerId: string,
  shard = 0,
): Promise<{ epoch: number; rivals: string[] }> {
  const base = shard * MOVER_EPOCHS;
  const [row] = await nextEpochQuery(client, { partition: MOVER_PARTITION, base });
  const raised = { partition: MOVER_PARTITION, epoch: row?.epoch ?? base + 1, worker: workerId };
  await client.execute({
    name: 'raise_mover_fence',
    sql: 'INSERT INTO landing_fences (partition, epoch, worker_id) SELECT {partition:UInt16}, {epoch:UInt64}, {worker:String}',
    params: raised,
    timeoutMs: TIMEOUT_MS,
  });
  // Two workers that begin at once may have read the same epoch. The one that wrote last sees the
  // other; both may see each other.
  const rivals = await rivalOwnersQuery(client, raised);
  return { epoch: raised.epoch, rivals: rivals.map(({ worker_id }) => worker_id) };
}

/** Returns the newest epoch that fences a partition of the ingest log; 0 where none is fenced. */
export async function readNewestEpoch(client: ClickHouse): Promise<number> {
  return (await newestEpochQuery(client, { except: MOVER_PARTITION }))[0]?.epoch ?? 0;
}

/** Records that a statement was given up: it is refused if it has not begun yet. */
export async function giveUpStatement(client: ClickHouse, queryId: string): Promise<void> {
  await client.execute({
    name: 'give_up_statement',
    sql: 'INSERT INTO landing_fences (partition, epoch, worker_id) SELECT {partition:UInt16}, 0, {statement:String}',
    params: { partition: GIVEN_UP_PARTITION, statement: queryId },
    timeoutMs: TIMEOUT_MS,
  });
}

/** Cancels a statement. Resolves when it has ended, also when it was not running. */
export async function killStatement(client: ClickHouse, queryId: string): Promise<void> {
  await client.execute({
    name: 'end_statement',
    sql: 'KILL QUERY WHERE query_id = {id:String} SYNC',
    params: { id: queryId },
    timeoutMs: TIMEOUT_MS,
  });
}

/** Returns the ids of the running statements of this database whose id begins with a prefix. */
export async function readRunningStatements(client: ClickHouse, prefix: string): Promise<string[]> {
  const rows = await runningStatementsQuery(client, { pattern: `${prefix}%` });
  return rows.map(({ query_id }) => query_id);
}
