// The database of a shard through which reads reach all shards: for each of the shard's tables, and for the
// views of analysts, a Distributed table of the same name. Statements name tables without a database, so the
// same statement reads one shard or all of them.
//
// The Distributed tables are over the views, and not beneath them: on another shard a query runs as the user
// who asked, whatever the definer of a view is here, and analysts may read views only.
import type { ClickHouse } from './client.ts';
import { viewNames } from './migrate.ts';

const TIMEOUT_MS = 60_000;
/** The tables of migrations and fences, which say something about their own shard. */
const OWN = ['schema_migrations', 'landing_fences'];

/** Views that add up rows, by the columns that they group by: two shards may each have a row of a group. */
const SUMMED: Readonly<Record<string, readonly string[]>> = {
  analyst_costs_daily: ['org_id', 'day', 'model'],
  analyst_usage: ['org_id', 'hour', 'agent_id'],
};

/** Returns the name of the database of Distributed tables. */
export const allDatabaseOf = (database: string): string => `${database}_all`;

/** Returns the name of the Distributed table over a view: its own, or another one where a view adds its rows up. */
const tableOver = (view: string): string => (view in SUMMED ? `${view}_by_shard` : view);

/** Returns the names that a user needs to read the documented views in the database of Distributed tables. */
export const allViewNames = (): string[] =>
  viewNames().flatMap((view) => (view in SUMMED ? [view, tableOver(view)] : [view]));

/** Table or view of a shard, and whether the Distributed table has the same columns. */
interface Local {
  name: string;
  same: 0 | 1;
  columns: string[];
}

/**
 * Creates the Distributed tables of a shard, and replaces those whose columns have changed.
 * @param shard client of the shard's own database, whose schema is the newest
 * @param cluster name of the cluster of all shards in the configuration of the servers
 * @param database the tables and views to read; the shard's own database if absent
 */
export async function createDistributed(
  shard: ClickHouse,
  cluster: string,
  database: string = shard.database,
): Promise<void> {
  const all = allDatabaseOf(database);
  const run = (sql: string): Promise<unknown> =>
    shard.execute({ name: 'distributed_tables', sql, timeoutMs: TIMEOUT_MS });
  await run(`CREATE DATABASE IF NOT EXISTS \`${all}\``);
  for (const { name, same, columns } of await locals(shard, database)) {
    if (same === 1) continue;
    const over = tableOver(name);
    await run(
      `CREATE OR REPLACE TABLE \`${all}\`.\`${over}\` AS \`${database}\`.\`${name}\` ENGINE = Distributed('${cluster}', '${database}', '${name}')`,
    );
    if (over !== name) await run(summedView(all, name, columns));
  }
}

/** Returns the tables with rows and the documented views of a database. */
function locals(shard: ClickHouse, database: string): Promise<Local[]> {
  const views = viewNames();
  return shard.rows<Local>({
    name: 'distributed_outdated',
    sql: `SELECT own.table AS name, own.columns = everywhere.columns AS same, arrayMap(column -> column.1, own.columns) AS columns
      FROM (
        SELECT table, groupArray((name, type)) AS columns
        FROM (SELECT * FROM system.columns WHERE database = {database:String} ORDER BY table, position)
        WHERE table IN {views:Array(String)} OR table IN (SELECT name FROM system.tables WHERE database = {database:String} AND endsWith(engine, 'MergeTree'))
        GROUP BY table
      ) AS own
      LEFT JOIN (
        SELECT table, groupArray((name, type)) AS columns
        FROM (SELECT * FROM system.columns WHERE database = {all:String} ORDER BY table, position)
        GROUP BY table
      ) AS everywhere ON everywhere.table = transform(own.table, {views:Array(String)}, {over:Array(String)}, own.table)
      WHERE own.table NOT IN {own:Array(String)}
      ORDER BY own.table IN {views:Array(String)}`,
    params: { database, all: allDatabaseOf(database), views, over: views.map(tableOver), own: OWN },
    timeoutMs: TIMEOUT_MS,
  });
}

/** Returns the statement for the view that adds up the rows of the shards. Its reader is the one who asks. */
function summedView(all: string, name: string, columns: readonly string[]): string {
  const keys = SUMMED[name] ?? [];
  const read = columns.map((column) => (keys.includes(column) ? column : `sum(of_shards.${column}) AS ${column}`));
  return `CREATE OR REPLACE VIEW \`${all}\`.\`${name}\` SQL SECURITY INVOKER AS
    SELECT ${read.join(', ')} FROM \`${all}\`.\`${tableOver(name)}\` AS of_shards GROUP BY ${keys.join(', ')}`;
}
