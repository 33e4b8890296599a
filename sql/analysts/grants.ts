// Rights of the users of the embedded engine, each as the part of a GRANT statement between GRANT
// and TO. Pure: takes names of databases.
import { allDatabaseOf, allViewNames } from '../client/distributed.ts';
import { ORG_READER, ORG_TABLES } from './org_views.ts';

/**
 * Views that analysts read. sql/views creates them with DEFINER = app SQL SECURITY DEFINER, so they
 * need no grant on a table.
 */
export const ANALYST_VIEWS = [
  'analyst_spans',
  'analyst_traces',
  'analyst_usage',
  'analyst_costs_daily',
  'analyst_texts',
  'analyst_calls',
  'analyst_scores',
  'analyst_feedback',
] as const;

/**
 * Table engines that migrations may use. Every other engine (File, URL, S3, Executable …) would
 * reach out of the store.
 */
const ENGINES = [
  'MergeTree',
  'ReplacingMergeTree',
  'SummingMergeTree',
  'AggregatingMergeTree',
  'CollapsingMergeTree',
  'VersionedCollapsingMergeTree',
  'Join',
  'Memory',
  'View',
  'MaterializedView',
] as const;

/** Table engine of the tables that read every shard of a cluster. Reading them needs no further right. */
const SHARDED_ENGINE = 'Distributed';

/** Right of the engine's own start script, which opens and closes ports. */
export const START_SCRIPT_GRANT = 'SYSTEM LISTEN ON *.*';

/**
 * Returns the rights of the service's own user.
 * @param databases quoted names, or patterns that end with *
 * @param sharded true for a server that is a shard of a cluster
 */
export function serviceGrants(databases: readonly string[], sharded = false): string[] {
  return [
    ...databases.map((database) => `ALL ON ${database}.*`),
    'CREATE DATABASE ON *.*',
    'SELECT ON system.*',
    'SELECT ON INFORMATION_SCHEMA.*',
    // The access check treats input() of an insert as a temporary table.
    'CREATE TEMPORARY TABLE ON *.*',
    'KILL QUERY ON *.*',
    'SYSTEM FLUSH LOGS ON *.*',
    'BACKUP ON *.*',
    'SET DEFINER ON app',
    `SET DEFINER ON ${ORG_READER}`,
    ...[...ENGINES, ...(sharded ? [SHARDED_ENGINE] : [])].map((engine) => `TABLE ENGINE ON ${engine}`),
  ];
}

/** Returns the right to read the views of a database. */
export const viewGrants = (database: string): string[] =>
  ANALYST_VIEWS.map((view) => `SELECT ON \`${database}\`.\`${view}\``);

/** Returns the right to read the views over all shards. */
export const allViewGrants = (database: string): string[] =>
  allViewNames().map((view) => `SELECT ON \`${allDatabaseOf(database)}\`.\`${view}\``);

/** Returns the right to read the tables beneath the views. */
export const tableGrants = (database: string): string[] =>
  ORG_TABLES.map((table) => `SELECT ON \`${database}\`.\`${table}\``);
