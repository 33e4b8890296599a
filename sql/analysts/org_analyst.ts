// Brings up what an org's own analysts read: users and row policies where the server keeps them by SQL, the database of the views, the views.
// The embedded engine has its users from a file (ops/launch/clickhouse/config.ts); there the first part changes nothing.
import { createHash } from 'node:crypto';
import { ClickHouseError } from '@clickhouse/client';
import { type ClickHouse, CLUSTER_DDL } from '../client/client.ts';
import { orgAnalystPassword, orgUserStatements, orgViewStatements } from './org_views.ts';

const TIMEOUT_MS = 10_000;
/** What one query of an analyst may take of an external server's memory. */
const MEMORY_BYTES = 2_000_000_000;
/** 497: the service's user may not do it. 514: no storage of users that can be written. 192 and 511: the users are not there. */
const NOT_OURS_CODES = new Set(['497', '514']);
const NO_VIEWS_CODES = new Set(['192', '497', '511']);

/**
 * Makes it all, or brings it up to date.
 * @returns null when it is so, else why the server does not let us
 * @throws StoreUnavailable; ClickHouseError for what is neither
 */
export async function ensureOrgViews(client: ClickHouse, cluster?: string): Promise<string | null> {
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
  } catch (error) {
    if (!isOneOf(error, NOT_OURS_CODES)) throw error;
    usersRefused = error.message;
  }
  try {
    for (const sql of orgViewStatements(client.database, cluster)) await run(sql);
  } catch (error) {
    if (!isOneOf(error, NO_VIEWS_CODES)) throw error;
    return usersRefused ?? error.message;
  }
  return null;
}

const isOneOf = (error: unknown, codes: ReadonlySet<string>): error is ClickHouseError =>
  error instanceof ClickHouseError && codes.has(error.code);
