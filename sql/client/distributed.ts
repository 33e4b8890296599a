// The database of a shard through which reads reach all shards: for each of the shard's tables a
// Distributed table of the same name. Statements name tables without a database, so the same statement
// reads one shard or all of them.
import type { ClickHouse } from './client.ts';

const TIMEOUT_MS = 60_000;
/** The tables of migrations and fences, which say something about their own shard. */
const OWN = ['schema_migrations', 'landing_fences'];

/** Returns the name of the database of Distributed tables. */
export const allDatabaseOf = (database: string): string => `${database}_all`;

/**
 * Creates the Distributed tables of a shard, and replaces those whose columns have changed.
 * @param shard client of the shard's own database, whose schema is the newest
 * @param cluster name of the cluster of all shards in the configuration of the servers
 */
export async function createDistributed(shard: ClickHouse, cluster: string): Promise<void> {
  const all = allDatabaseOf(shard.database);
  const run = (sql: string): Promise<unknown> =>
    shard.execute({ name: 'distributed_tables', sql, timeoutMs: TIMEOUT_MS });
  await run(`CREATE DATABASE IF NOT EXISTS \`${all}\``);
  const tables = await shard.rows<{ name: string; same: number }>({
    name: 'distributed_outdated',
    sql: `WITH columns_of AS (
        SELECT database, table, groupArray((name, type, default_kind, default_expression)) AS columns
        FROM (SELECT * FROM system.columns WHERE database IN (currentDatabase(), {all:String}) ORDER BY position)
        GROUP BY database, table
      )
      SELECT own.table AS name, own.columns = everywhere.columns AS same
      FROM (SELECT * FROM columns_of WHERE database = currentDatabase()) AS own
      LEFT JOIN (SELECT * FROM columns_of WHERE database = {all:String}) AS everywhere ON everywhere.table = own.table
      WHERE own.table IN (SELECT name FROM system.tables WHERE database = currentDatabase() AND endsWith(engine, 'MergeTree'))
        AND own.table NOT IN {own:Array(String)}`,
    params: { all, own: OWN },
    timeoutMs: TIMEOUT_MS,
  });
  for (const { name, same } of tables)
    if (same !== 1)
      await run(
        `CREATE OR REPLACE TABLE \`${all}\`.\`${name}\` AS \`${shard.database}\`.\`${name}\` ENGINE = Distributed('${cluster}', '${shard.database}', '${name}')`,
      );
}
