// The read-only user of analysts, on a server that keeps its users by SQL. The embedded engine reads its users from a file
// instead; there this changes nothing.
import { createHash } from 'node:crypto';
import { ClickHouseError } from '@clickhouse/client';
import { type ClickHouse, CLUSTER_DDL } from '../client/client.ts';
import { readScripts } from '../client/migrate.ts';

const TIMEOUT_MS = 10_000;
/** 514: no storage of users that can be written. 497: the service's own user may not make users. */
const NOT_OURS_CODES = new Set(['497', '514']);

/**
 * Makes the user `analyst`, or gives it this password, and lets it read the views and nothing else.
 * @returns null when it is so, else why the server does not let us
 */
export async function ensureAnalyst(client: ClickHouse, password: string, cluster?: string): Promise<string | null> {
  try {
    for (const sql of analystStatements(client.database, password, cluster))
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

/** Only the hash of the password leaves the process. */
export function analystStatements(database: string, password: string, cluster?: string): string[] {
  const on = cluster === undefined ? '' : ` ON CLUSTER '${cluster}'`;
  const identified = `IDENTIFIED WITH sha256_hash BY '${createHash('sha256').update(password).digest('hex')}'`;
  const views = readScripts().views.map(({ name }) => name.replace(/\.sql$/, ''));
  return [
    `CREATE USER IF NOT EXISTS analyst${on} ${identified} SETTINGS readonly = 1, max_execution_time = 60, max_memory_usage = 2000000000`,
    `ALTER USER analyst${on} ${identified}`,
    ...views.map((view) => `GRANT${on} SELECT ON \`${database}\`.\`${view}\` TO analyst`),
  ];
}
