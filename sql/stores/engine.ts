// Statements about the engine itself: parts, disks and running queries, and the removal of replaced
// parts.
import { z } from 'zod';
import type { ClickHouse } from '../client/client.ts';
import { defineQuery } from '../client/query.ts';

const LOAD_TIMEOUT_MS = 5000;
const PARTS_TIMEOUT_MS = 60_000;
const COUNT_TIMEOUT_MS = 5000;

export const readEngineLoad = defineQuery({
  name: 'store_facts',
  file: 'engine/load.sql',
  params: z.object({}),
  row: z.object({ parts_max: z.number(), free_bytes: z.number(), total_bytes: z.number() }),
  timeoutMs: LOAD_TIMEOUT_MS,
});

/**
 * Tables with parts that a merge replaced more than `kept_s` seconds ago. Parts that a reader or a
 * merge still holds count too.
 */
export const readReplacedParts = defineQuery({
  name: 'replaced_parts',
  file: 'engine/replaced_parts.sql',
  params: z.object({ kept_s: z.int() }),
  row: z.object({ name: z.string(), parts: z.int() }),
  timeoutMs: PARTS_TIMEOUT_MS,
});

const analystQueriesQuery = defineQuery({
  name: 'analyst_queries',
  file: 'engine/analyst_queries.sql',
  params: z.object({ user: z.string(), mark: z.string() }),
  row: z.object({ n: z.coerce.number() }),
  timeoutMs: COUNT_TIMEOUT_MS,
});

/** Returns how many queries of a user run in the engine whose id contains `mark`. */
export async function countRunningQueries(client: ClickHouse, user: string, mark: string): Promise<number> {
  return (await analystQueriesQuery(client, { user, mark }))[0]?.n ?? 0;
}

/** Removes the replaced parts of a table from the disk. Cancels merges of the table, which begin again. */
export async function sweepReplacedParts(client: ClickHouse, table: string): Promise<void> {
  // No partition has this id. The statement drops no row, and the engine clears replaced parts
  // after every drop.
  await client.execute({
    name: 'sweep_parts',
    sql: 'ALTER TABLE {name:Identifier} DROP PARTITION ID {id:String}',
    params: { name: table, id: 'none' },
    timeoutMs: PARTS_TIMEOUT_MS,
  });
}

const clusterShardsQuery = defineQuery({
  name: 'cluster_shards',
  file: 'engine/cluster_shards.sql',
  params: z.object({ cluster: z.string() }),
  row: z.object({ shards: z.coerce.number() }),
  timeoutMs: COUNT_TIMEOUT_MS,
});

/** Returns the number of shards that a server has in its configuration of a cluster; 0 if it does not know the cluster. */
export async function countClusterShards(client: ClickHouse, cluster: string): Promise<number> {
  return (await clusterShardsQuery(client, { cluster }))[0]?.shards ?? 0;
}
