// Brings a database to the newest schema: sql/migrations in the order of their numbers, then the views.
// Guarantees: forward only; each migration runs once and is recorded with its checksum; a landed migration that was
// edited is refused; two processes that start at once do no harm, as every statement is idempotent.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import type { ClickHouse } from './client.ts';

export interface MigrateOptions {
  /** Name of a cluster: the DDL is then rewritten for replication. */
  cluster?: string | undefined;
}

const STATEMENT_TIMEOUT_MS = 60_000;

interface Script {
  name: string;
  sql: string;
  checksum: string;
}

/** Applies what is missing. Resolves with the names of the migrations applied now. */
export async function migrate(client: ClickHouse, { cluster }: MigrateOptions): Promise<string[]> {
  const run = (name: string, sql: string) => client.execute({ name, sql: cluster === undefined ? sql : rewriteForCluster(sql), timeoutMs: STATEMENT_TIMEOUT_MS });
  await client.createDatabase(cluster);
  await run(
    'migrations_table',
    `CREATE TABLE IF NOT EXISTS schema_migrations (name String, checksum String, applied_at DateTime64(3, 'UTC') DEFAULT now64(3)) ENGINE = MergeTree ORDER BY name`,
  );
  const known = new Map((await client.rows<{ name: string; checksum: string }>({ name: 'migrations_known', sql: 'SELECT name, checksum FROM schema_migrations', timeoutMs: STATEMENT_TIMEOUT_MS })).map((row) => [row.name, row.checksum]));
  const applied: string[] = [];
  for (const script of readScripts('migrations')) {
    const checksum = known.get(script.name);
    if (checksum === script.checksum) continue;
    if (checksum !== undefined) throw new Error(`migration ${script.name} was changed after it had been applied; write a new one`);
    for (const statement of splitStatements(script.sql)) await run(`migrate_${script.name}`, statement);
    await client.execute({ name: 'migration_done', sql: 'INSERT INTO schema_migrations (name, checksum) SELECT {name:String}, {checksum:String}', params: { name: script.name, checksum: script.checksum }, timeoutMs: STATEMENT_TIMEOUT_MS });
    applied.push(script.name);
  }
  for (const view of readScripts('views')) {
    for (const statement of splitStatements(view.sql)) await run(`view_${view.name}`, statement);
  }
  return applied;
}

function readScripts(folder: 'migrations' | 'views'): Script[] {
  const base = new URL(`./${folder}/`, import.meta.url);
  return readdirSync(base)
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((name) => {
      const sql = readFileSync(new URL(name, base), 'utf8');
      return { name, sql, checksum: createHash('sha256').update(sql).digest('hex') };
    });
}

/** HTTP takes one statement a request. Statements end with a semicolon at the end of a line; comment lines are left out. */
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
 * The same DDL for a Replicated database: its tables take the Replicated engines, and the DDL spreads by itself.
 * Names and keys stay as they are.
 */
export function rewriteForCluster(sql: string): string {
  return sql.replaceAll(/ENGINE\s*=\s*((?:VersionedCollapsing|Aggregating|Replacing|Summing|Collapsing)?MergeTree)\b/g, 'ENGINE = Replicated$1');
}
