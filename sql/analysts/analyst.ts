// The read-only user `analyst`, on a server that stores its users by SQL. The embedded engine reads
// its users from a file (ops/launch/clickhouse/config.ts), so there ensureAnalyst changes nothing.
import { createHash } from 'node:crypto';
import { ClickHouseError } from '@clickhouse/client';
import type { ClickHouse } from '../client/client.ts';
import { CLUSTER_DDL } from '../client/settings.ts';
import { viewNames } from '../client/migrate.ts';
import { allViewGrants } from './grants.ts';

const TIMEOUT_MS = 10_000;
/**
 * 514: the server has no writable storage of users. 497: the service's own user may not create
 * users.
 */
const NOT_OURS_CODES = new Set(['497', '514']);

/**
 * Creates the user `analyst`, or sets its password, and grants it the right to read the views and
 * nothing else: those of the server, and on a shard those over all shards.
 * @returns null on success, else the server's reason for rejecting the statement
 */
export async function ensureAnalyst(
  client: ClickHouse,
  password: string,
  { cluster, isShard }: { cluster: string | undefined; isShard: boolean },
): Promise<string | null> {
  try {
    for (const sql of [
      ...analystStatements(client.database, password, cluster),
      ...(isShard ? shardStatements(client.database, cluster) : []),
    ])
      await client.execute({
        name: 'analyst_user',
        sql,
        timeoutMs: TIMEOUT_MS,
        settings: cluster === undefined ? {} : CLUSTER_DDL,
      });
    return null;
  } catch (error) {
    if (error instanceof ClickHouseError && NOT_OURS_CODES.has(error.code)) return error.message;
    throw error;
  }
}

/** Returns the statements that create the user. They contain only the hash of the password. */
export function analystStatements(database: string, password: string, cluster?: string): string[] {
  const on = cluster === undefined ? '' : ` ON CLUSTER '${cluster}'`;
  const identified = `IDENTIFIED WITH sha256_hash BY '${createHash('sha256').update(password).digest('hex')}'`;
  return [
    `CREATE USER IF NOT EXISTS analyst${on} ${identified} SETTINGS readonly = 1, max_execution_time = 60, max_memory_usage = 2000000000`,
    `ALTER USER analyst${on} ${identified}`,
    ...viewNames().map((view) => `GRANT${on} SELECT ON \`${database}\`.\`${view}\` TO analyst`),
  ];
}

/** Returns the statements that let the user read the views over all shards. */
function shardStatements(database: string, cluster: string | undefined): string[] {
  const on = cluster === undefined ? '' : ` ON CLUSTER '${cluster}'`;
  return allViewGrants(database).map((right) => `GRANT${on} ${right} TO analyst`);
}
