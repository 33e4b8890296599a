// Migrates a database to the newest schema: sql/migrations in numerical order, then the views, which are left alone
// where a newer version has migrated the database.
// Guarantees: migrations only go forward; each runs once and is recorded with the checksum of its
// text; an applied migration that was edited is rejected; two processes may start at once, because
// every statement is idempotent.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import type { ClickHouse } from './client.ts';
import { CLUSTER_DDL } from './settings.ts';

export interface MigrateOptions {
  /** Name of a cluster; the DDL is then rewritten for replication. */
  cluster?: string | undefined;
  /** True for one of several shards. */
  isShard?: boolean;
  /** Scripts to apply instead of the project's own. */
  scripts?: Scripts;
}

/** File of sql/migrations or sql/views. */
export interface Script {
  name: string;
  sql: string;
}

export interface Scripts {
  /** In the order of their numbers. */
  migrations: readonly Script[];
  /** Applied again whenever their text changes. */
  views: readonly Script[];
}

const STATEMENT_TIMEOUT_MS = 60_000;
const MIGRATION_NAME = /^\d{4}_[a-z0-9_]+\.sql$/;

/**
 * Applies the missing migrations and the changed views. Returns the names of the migrations it
 * applied.
 */
export async function migrate(
  client: ClickHouse,
  { cluster, isShard = false, scripts = readScripts() }: MigrateOptions,
): Promise<string[]> {
  checkNames(scripts.migrations);
  const run = (name: string, sql: string) =>
    client.execute(
      cluster === undefined
        ? { name, sql, timeoutMs: STATEMENT_TIMEOUT_MS }
        : { name, sql: rewriteForCluster(sql), timeoutMs: STATEMENT_TIMEOUT_MS, settings: CLUSTER_DDL },
    );
  const apply = async ({ name, sql }: Script) => {
    for (const statement of splitStatements(sql)) await run('migrate', statement);
    await record(client, name, checksumOf(sql));
  };
  await client.createDatabase(cluster, isShard);
  await run(
    'migrations_table',
    `CREATE TABLE IF NOT EXISTS schema_migrations (name String, checksum String, applied_at DateTime64(3, 'UTC') DEFAULT now64(3)) ENGINE = MergeTree ORDER BY name`,
  );
  const known = await readKnown(client);
  const applied: string[] = [];
  for (const script of scripts.migrations) {
    const checksum = known.get(script.name);
    if (checksum === checksumOf(script.sql)) continue;
    if (checksum !== undefined)
      throw new Error(`migration ${script.name} was edited after it was applied; write a new migration instead`);
    await apply(script);
    applied.push(script.name);
  }
  // A process of an older version that starts beside newer ones must not take columns of the views from them.
  const isNewer = unknownAmong(known.keys(), scripts).length > 0;
  for (const view of isNewer ? [] : scripts.views) {
    const name = `views/${view.name}`;
    if (applied.length > 0 || known.get(name) !== checksumOf(view.sql)) await apply({ name, sql: view.sql });
  }
  return applied;
}

/**
 * Returns the migrations that a database has and this version does not.
 * @throws StoreUnavailable
 */
export async function unknownMigrations(client: ClickHouse, scripts: Scripts = readScripts()): Promise<string[]> {
  return unknownAmong((await readKnown(client)).keys(), scripts);
}

function unknownAmong(applied: Iterable<string>, { migrations }: Scripts): string[] {
  const names = new Set(migrations.map(({ name }) => name));
  return [...applied].filter((name) => !name.startsWith('views/') && !names.has(name));
}

/** Returns the newest checksum of every applied script. */
async function readKnown(client: ClickHouse): Promise<Map<string, string>> {
  const rows = await client.rows<{ name: string; checksum: string }>({
    name: 'migrations_known',
    sql: 'SELECT name, argMax(checksum, applied_at) AS checksum FROM schema_migrations GROUP BY name',
    timeoutMs: STATEMENT_TIMEOUT_MS,
  });
  return new Map(rows.map((row) => [row.name, row.checksum]));
}

async function record(client: ClickHouse, name: string, checksum: string): Promise<void> {
  await client.execute({
    name: 'migration_done',
    sql: 'INSERT INTO schema_migrations (name, checksum) SELECT {name:String}, {checksum:String}',
    params: { name, checksum },
    timeoutMs: STATEMENT_TIMEOUT_MS,
  });
}

const checksumOf = (sql: string): string => createHash('sha256').update(sql).digest('hex');

function checkNames(migrations: readonly Script[]): void {
  for (const [index, { name }] of migrations.entries()) {
    const before = Number(migrations[index - 1]?.name.slice(0, 4) ?? 0);
    if (!MIGRATION_NAME.test(name) || Number(name.slice(0, 4)) <= before)
      throw new Error(`migration ${name} is not named NNNN_verb_noun.sql with a number of its own`);
  }
}

/** Reads the project's own migrations and views. */
export function readScripts(): Scripts {
  return { migrations: readFolder('migrations'), views: readFolder('views') };
}

/** Returns the names of the documented views, which analysts read. */
export const viewNames = (): string[] => readScripts().views.map(({ name }) => name.replace(/\.sql$/, ''));

function readFolder(folder: 'migrations' | 'views'): Script[] {
  const base = new URL(`../${folder}/`, import.meta.url);
  return readdirSync(base)
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((name) => ({ name, sql: readFileSync(new URL(name, base), 'utf8') }));
}

/**
 * Splits a script into statements, because HTTP takes one statement per request. A statement ends
 * with a semicolon at the end of a line; comment lines are left out.
 */
export function splitStatements(sql: string): string[] {
  return sql
    .split('\n')
    .filter((line) => !line.trimStart().startsWith('--'))
    .join('\n')
    .split(/;\s*(?:\n|$)/)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '');
}

/**
 * Returns the same DDL for a Replicated database: its tables use the Replicated engines, and the
 * database replicates the DDL. Names and keys stay unchanged.
 */
export function rewriteForCluster(sql: string): string {
  return sql.replaceAll(
    /ENGINE\s*=\s*((?:VersionedCollapsing|Aggregating|Replacing|Summing|Collapsing)?MergeTree)\b/g,
    'ENGINE = Replicated$1',
  );
}
