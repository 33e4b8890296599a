// What an org's own analysts read: the documented views once more, in a database of their own, where a row policy of the tables beneath
// leaves only the rows of the org that the service names in a header of the request. Names, bounds and statements; no I/O.
// Why not a WHERE in the views: the engine may test a condition of the query before it, and an error text or throwIf() would then tell of
// rows of others. A row policy is always the first filter, and its value is a constant to the engine, so the primary key is used.
import { createHmac } from 'node:crypto';
import { readScripts } from '../client/migrate.ts';

/** The engine's user as which the service asks for analysts. Its password never leaves the service. */
export const ORG_ANALYST = 'org_analyst';
/** Definer of the views: the row policies are this user's. Nobody logs in as it. */
export const ORG_READER = 'org_reader';
/** Says for which org the service asks. */
export const ORG_HEADER = 'X-Millrace-Org';

/** Tables beneath the views. */
export const ORG_TABLES = [
  'spans',
  'span_texts',
  'span_texts_recent',
  'traces',
  'usage_events',
  'judge_scores',
  'user_scores',
] as const;

/** No org id has this form, so a request without the header sees nothing. It has to be one comparison: with AND the key is not used (26.7). */
const NO_ORG = '!';
export const ORG_FILTER = `org_id = if(empty(getClientHTTPHeader('${ORG_HEADER}')), '${NO_ORG}', getClientHTTPHeader('${ORG_HEADER}'))`;

/** A query of an analyst is cut here, seconds. */
export const ORG_SECONDS_MAX = 60;
/**
 * Queries at a time of all analysts of all organizations, in the engine. An organization gets below ENGINE_ORG_MAX more, plus what each API
 * process begins at the same moment (RUNNING_ORG_MAX of api/telemetry/analysts/running.ts, 4): up to six API processes, one organization cannot
 * take all.
 */
const RUNNING_MAX = 32;
/**
 * An organization with so many queries in the engine begins no further one. It has more than its share of one API process when the engine
 * goes on with queries that were cancelled: a function that works on one block cannot be interrupted.
 */
export const ENGINE_ORG_MAX = 8;
/** As many rows as a granule of the tables has. */
const BLOCK_ROWS_MAX = 8192;
const RESULT_BYTES_MAX = 268_435_456;
/** Of sorting and grouping beyond memory, of one query; all together have twice that. */
const DISK_BYTES_MAX = 1_073_741_824;

/** Database of the views. */
export const orgDatabaseOf = (database: string): string => `${database}_org`;

/** Password of ORG_ANALYST, from that of the service's own user: known to every process of the service, and to nobody else. */
export const orgAnalystPassword = (appPassword: string): string =>
  createHmac('sha256', appPassword).update('org analysts').digest('hex');

/** The documented views by name. */
export const viewNames = (): string[] => readScripts().views.map(({ name }) => name.replace(/\.sql$/, ''));

/** Settings of ORG_ANALYST that a query may not change, by name. `memoryBytes` is for one query; all together have twice that. */
export function orgSettings(memoryBytes: number): Record<string, number> {
  return {
    readonly: 1,
    allow_get_client_http_header: 1,
    max_memory_usage: memoryBytes,
    max_memory_usage_for_user: memoryBytes * 2,
    max_concurrent_queries_for_user: RUNNING_MAX,
    max_result_bytes: RESULT_BYTES_MAX,
    max_temporary_data_on_disk_size_for_query: DISK_BYTES_MAX,
    max_temporary_data_on_disk_size_for_user: DISK_BYTES_MAX * 2,
    // A function is interrupted between blocks only, and every export that is under way holds some blocks in memory.
    max_block_size: BLOCK_ROWS_MAX,
    max_query_size: 262_144,
    // Of the patterns of multiMatchAny and its relatives, which are compiled in one call.
    max_hyperscan_regexp_length: 1000,
    max_hyperscan_regexp_total_length: 10_000,
    max_threads: 2,
    cancel_http_readonly_queries_on_client_close: 1,
    implicit_select: 0,
    log_queries: 0,
    // What one org's query found out about parts is not kept for another's.
    use_query_condition_cache: 0,
    use_query_cache: 0,
    allow_introspection_functions: 0,
    allow_ddl: 0,
    // How many rows were read counts those of neighbours in the same granule.
    output_format_write_statistics: 0,
  };
}

/** How an answer is written: none of these names a file, a host or a schema. */
const WRITING = [
  'date_time_output_format',
  'extremes',
  'format_csv_delimiter',
  'format_csv_null_representation',
  'format_tsv_null_representation',
  'join_use_nulls',
  'max_result_rows',
  'output_format_arrow_compression_method',
  'output_format_arrow_string_as_string',
  'output_format_csv_crlf_end_of_line',
  'output_format_decimal_trailing_zeros',
  'output_format_json_array_of_rows',
  'output_format_json_escape_forward_slashes',
  'output_format_json_named_tuples_as_objects',
  'output_format_json_quote_64bit_floats',
  'output_format_json_quote_64bit_integers',
  'output_format_json_quote_decimals',
  'output_format_json_quote_denormals',
  'output_format_json_validate_utf8',
  'output_format_parquet_compression_method',
  'output_format_parquet_string_as_string',
  'output_format_pretty_color',
  'output_format_pretty_max_rows',
  'output_format_pretty_row_numbers',
  'output_format_tsv_crlf_end_of_line',
  'result_overflow_mode',
  'session_timezone',
] as const;

interface Bounds {
  value?: number;
  min?: number;
  max?: number;
}

/** Settings that a request may give nevertheless, with their bounds. */
export const ORG_CHANGEABLE: Readonly<Record<string, Bounds>> = {
  max_execution_time: { value: ORG_SECONDS_MAX, min: 1, max: ORG_SECONDS_MAX },
  ...Object.fromEntries(WRITING.map((name) => [name, {}])),
};

/** Makes the database and its views; the definer has to be there. Run them in the service's own database, as the tables are named without theirs. */
export function orgViewStatements(database: string, cluster?: string): string[] {
  const on = cluster === undefined ? '' : ` ON CLUSTER '${cluster}'`;
  const name = orgDatabaseOf(database);
  return [
    `CREATE DATABASE IF NOT EXISTS \`${name}\`${on}`,
    ...readScripts().views.map(({ sql }) =>
      sql
        .replace(/CREATE OR REPLACE VIEW (\w+)/, `CREATE OR REPLACE VIEW \`${name}\`.$1${on}`)
        .replace('DEFINER = CURRENT_USER', `DEFINER = ${ORG_READER}`)
        .replace(/;\s*$/, ''),
    ),
  ];
}

/** Makes the two users and the row policies, on a server that keeps them by SQL. Only hashes of passwords stand in them. */
export function orgUserStatements(
  database: string,
  passwordHash: string,
  memoryBytes: number,
  cluster?: string,
): string[] {
  const on = cluster === undefined ? '' : ` ON CLUSTER '${cluster}'`;
  const fixed = Object.entries(orgSettings(memoryBytes)).map(([name, value]) => `${name} = ${String(value)} CONST`);
  const free = Object.entries(ORG_CHANGEABLE).map(([name, { value, min, max }]) =>
    [
      name,
      ...(value === undefined ? [] : [`= ${String(value)}`]),
      ...(min === undefined ? [] : [`MIN ${String(min)}`]),
      ...(max === undefined ? [] : [`MAX ${String(max)}`]),
      'CHANGEABLE_IN_READONLY',
    ].join(' '),
  );
  const user = `${ORG_ANALYST}${on} IDENTIFIED WITH sha256_hash BY '${passwordHash}'`;
  const settings = `SETTINGS ${[...fixed, ...free].join(', ')}`;
  return [
    `CREATE USER IF NOT EXISTS ${ORG_READER}${on} HOST NONE`,
    ...ORG_TABLES.flatMap((table) => [
      `CREATE ROW POLICY OR REPLACE millrace_org${on} ON \`${database}\`.\`${table}\` USING ${ORG_FILTER} TO ${ORG_READER}`,
      // Everybody else goes on seeing every row, also where a server hides the rows of tables that have policies for others.
      `CREATE ROW POLICY OR REPLACE millrace_others${on} ON \`${database}\`.\`${table}\` USING 1 TO ALL EXCEPT ${ORG_READER}`,
      `GRANT${on} SELECT ON \`${database}\`.\`${table}\` TO ${ORG_READER}`,
    ]),
    `CREATE USER IF NOT EXISTS ${user} ${settings}`,
    `ALTER USER ${user} ${settings}`,
    ...viewNames().map((view) => `GRANT${on} SELECT ON \`${orgDatabaseOf(database)}\`.\`${view}\` TO ${ORG_ANALYST}`),
  ];
}
