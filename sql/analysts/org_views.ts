// Views for an organization's own analysts: the documented views again, in a database of their own.
// Row policies on the underlying tables leave only the rows of the organization that the service
// names in the id of the query. Names, bounds and statements; no I/O. A WHERE clause in the views
// would not do: the engine may evaluate a condition of the query before it, and an error text or
// throwIf() would then reveal rows of other organizations. A row policy is always the first filter,
// and its value is a constant to the engine, so the primary key is used.
import { createHmac } from 'node:crypto';
import { readScripts, viewNames } from '../client/migrate.ts';

/**
 * User as which the service sends the queries of analysts. Its password never leaves the service.
 */
export const ORG_ANALYST = 'org_analyst';
/** Definer of the views; the row policies apply to this user. Nobody logs in as it. */
export const ORG_READER = 'org_reader';
/** Request header that names the organization to row policies of older versions. */
export const ORG_HEADER = 'X-Millrace-Org';

/** Tables that the views read. */
export const ORG_TABLES = [
  'spans',
  'span_texts',
  'span_texts_recent',
  'traces',
  'usage_events',
  'judge_scores',
  'user_scores',
] as const;

/**
 * No organization id has this form, so a request without an organization sees no row. The filter must be
 * one comparison: with AND the engine (26.7) does not use the key.
 */
const NO_ORG = '!';
/**
 * The organization is the part of the query's id before the first colon: another shard gets the id with
 * the query, and no header. Processes of older versions send ids without a colon, and the header.
 */
export const ORG_FILTER = `org_id = multiIf(position(initialQueryID(), ':') > 0, splitByChar(':', initialQueryID())[1], empty(getClientHTTPHeader('${ORG_HEADER}')), '${NO_ORG}', getClientHTTPHeader('${ORG_HEADER}'))`;

/** Returns the id of a query for an organization; null for none, which sees no row. */
export const orgQueryId = (org_id: string | null, rest: string): string => `${org_id ?? NO_ORG}:${rest}`;

/** Maximum run time of an analyst's query, seconds. */
export const ORG_SECONDS_MAX = 60;
/**
 * Maximum concurrent queries in the engine of all analysts of all organizations. One organization
 * gets fewer than ENGINE_ORG_MAX, plus what each API process starts at the same moment
 * (RUNNING_ORG_MAX in api/telemetry/analysts/running.ts, 4). With up to six API processes, one
 * organization cannot take all of them.
 */
const RUNNING_MAX = 32;
/**
 * Number of running queries in the engine at which an organization may start no further query. An
 * organization exceeds the share of one API process when cancelled queries go on: the engine cannot
 * interrupt a function that works on one block.
 */
export const ENGINE_ORG_MAX = 8;
/** Rows of a granule of the tables. */
const BLOCK_ROWS_MAX = 8192;
const RESULT_BYTES_MAX = 268_435_456;
/**
 * Disk space of one query for sorting and grouping that do not fit in memory; all queries together
 * get twice that.
 */
const DISK_BYTES_MAX = 1_073_741_824;

/** Returns the name of the database of the views. */
export const orgDatabaseOf = (database: string): string => `${database}_org`;

/**
 * Returns the password of ORG_ANALYST, derived from the password of the service's own user. Only
 * processes of the service can compute it.
 */
export const orgAnalystPassword = (appPassword: string): string =>
  createHmac('sha256', appPassword).update('org analysts').digest('hex');

/**
 * Returns the settings of ORG_ANALYST that a query may not change, by name.
 * @param memoryBytes memory of one query; all queries together get twice that
 */
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
    // The engine interrupts a function only between blocks, and every running export keeps some
    // blocks in memory.
    max_block_size: BLOCK_ROWS_MAX,
    max_query_size: 262_144,
    // Bounds the patterns of multiMatchAny and related functions, which the engine compiles in one
    // uninterruptible call.
    max_hyperscan_regexp_length: 1000,
    max_hyperscan_regexp_total_length: 10_000,
    max_threads: 2,
    cancel_http_readonly_queries_on_client_close: 1,
    implicit_select: 0,
    log_queries: 0,
    // What the engine learns about parts from one organization's query must not serve another's.
    use_query_condition_cache: 0,
    use_query_cache: 0,
    allow_introspection_functions: 0,
    allow_ddl: 0,
    // The number of rows read includes rows of other organizations in the same granule.
    output_format_write_statistics: 0,
  };
}

/** Settings of the output format. None of them names a file, a host or a schema. */
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

/** Settings that a request may still change, with their bounds. */
export const ORG_CHANGEABLE: Readonly<Record<string, Bounds>> = {
  max_execution_time: { value: ORG_SECONDS_MAX, min: 1, max: ORG_SECONDS_MAX },
  ...Object.fromEntries(WRITING.map((name) => [name, {}])),
};

/**
 * Returns the statements that create the database and its views. The definer must exist. The
 * statements name tables without a database, so run them in the service's own.
 */
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

/**
 * Returns the statements that create the two users and the row policies, on a server that stores
 * them by SQL. They contain only the hash of the password.
 */
export function orgUserStatements(
  database: string,
  passwordHash: string,
  memoryBytes: number,
  cluster?: string,
): string[] {
  const on = cluster === undefined ? '' : ` ON CLUSTER '${cluster}'`;
  const fixed = Object.entries(orgSettings(memoryBytes)).map(([name, value]) => `${name} = ${value} CONST`);
  const free = Object.entries(ORG_CHANGEABLE).map(([name, { value, min, max }]) =>
    [
      name,
      ...(value === undefined ? [] : [`= ${value}`]),
      ...(min === undefined ? [] : [`MIN ${min}`]),
      ...(max === undefined ? [] : [`MAX ${max}`]),
      'CHANGEABLE_IN_READONLY',
    ].join(' '),
  );
  const user = `${ORG_ANALYST}${on} IDENTIFIED WITH sha256_hash BY '${passwordHash}'`;
  const settings = `SETTINGS ${[...fixed, ...free].join(', ')}`;
  return [
    `CREATE USER IF NOT EXISTS ${ORG_READER}${on} HOST NONE`,
    ...ORG_TABLES.flatMap((table) => [
      `CREATE ROW POLICY OR REPLACE millrace_org${on} ON \`${database}\`.\`${table}\` USING ${ORG_FILTER} TO ${ORG_READER}`,
      // All other users keep seeing every row, also on servers that hide rows from users without a
      // policy of their own.
      `CREATE ROW POLICY OR REPLACE millrace_others${on} ON \`${database}\`.\`${table}\` USING 1 TO ALL EXCEPT ${ORG_READER}`,
      `GRANT${on} SELECT ON \`${database}\`.\`${table}\` TO ${ORG_READER}`,
    ]),
    `CREATE USER IF NOT EXISTS ${user} ${settings}`,
    `ALTER USER ${user} ${settings}`,
    ...viewNames().map((view) => `GRANT${on} SELECT ON \`${orgDatabaseOf(database)}\`.\`${view}\` TO ${ORG_ANALYST}`),
  ];
}
