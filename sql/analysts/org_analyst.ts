// Creates what an organization's own analysts read: users and row policies where the server stores
// them by SQL, then the database of the views and the views. The embedded engine reads its users
// from a file (ops/launch/clickhouse/config.ts), so there the first part changes nothing.
import { createHash } from 'node:crypto';
import { ClickHouseError } from '@clickhouse/client';
import type { ClickHouse } from '../client/client.ts';
import { CLUSTER_DDL } from '../client/settings.ts';
import { createDistributed } from '../client/distributed.ts';
import { allViewGrants } from './grants.ts';
import { ORG_ANALYST, orgAnalystPassword, orgDatabaseOf, orgUserStatements, orgViewStatements } from './org_views.ts';

const TIMEOUT_MS = 10_000;
/** Memory that one query of an analyst may use on an external server, in bytes. */
const MEMORY_BYTES = 2_000_000_000;
/**
 * 497: the service's user lacks the right. 514: the server has no writable storage of users. 192
 * and 511: the users do not exist.
 */
const NOT_OURS_CODES = new Set(['497', '514']);
const NO_VIEWS_CODES = new Set(['192', '497', '511']);

/**
 * Creates the users, row policies and views of a server, or updates them; on a shard also the views over all shards.
 * @param cluster name of the cluster that replicates the server, if there is one
 * @param shards name of the cluster of all shards, if there are several
 * @returns null on success, else the server's reason for rejecting a statement
 * @throws StoreUnavailable; ClickHouseError for any other failure
 */
export async function ensureOrgViews(
  client: ClickHouse,
  { cluster, shards }: { cluster?: string | undefined; shards?: string } = {},
): Promise<string | null> {
  const run = (sql: string) =>
    client.execute({
      name: 'org_views',
      sql,
      timeoutMs: TIMEOUT_MS,
      settings: cluster === undefined ? {} : CLUSTER_DDL,
    });
  const passwordHash = client.derived((password) =>
    createHash('sha256').update(orgAnalystPassword(password)).digest('hex'),
  );
  let usersRefused: string | null = null;
  try {
    for (const sql of orgUserStatements(client.database, passwordHash, MEMORY_BYTES, cluster)) await run(sql);
    if (shards !== undefined)
      for (const right of allViewGrants(orgDatabaseOf(client.database)))
        await run(`GRANT${cluster === undefined ? '' : ` ON CLUSTER '${cluster}'`} ${right} TO ${ORG_ANALYST}`);
  } catch (error) {
    if (!isOneOf(error, NOT_OURS_CODES)) throw error;
    usersRefused = error.message;
  }
  try {
    for (const sql of orgViewStatements(client.database, cluster)) await run(sql);
    if (shards !== undefined) await createDistributed(client, shards, orgDatabaseOf(client.database));
  } catch (error) {
    if (!isOneOf(error, NO_VIEWS_CODES)) throw error;
    return usersRefused ?? error.message;
  }
  return null;
}

const isOneOf = (error: unknown, codes: ReadonlySet<string>): error is ClickHouseError =>
  error instanceof ClickHouseError && codes.has(error.code);
