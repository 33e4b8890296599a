// Configuration of the embedded ClickHouse: the text of config.xml (server settings) and users.xml.
// Takes paths, passwords and bounds; the text contains no password in the clear, but the secret of a
// cluster.
import { createHash, randomBytes } from 'node:crypto';
import { REPLACED_PARTS_KEPT_S } from '../../platform/clickhouse/replaced_parts.ts';
import {
  ORG_ANALYST,
  ORG_CHANGEABLE,
  ORG_FILTER,
  ORG_READER,
  ORG_TABLES,
  orgAnalystPassword,
  orgDatabaseOf,
  orgSettings,
} from '../../../sql/analysts/org_views.ts';
import {
  allViewGrants,
  serviceGrants,
  START_SCRIPT_GRANT,
  tableGrants,
  viewGrants,
} from '../../../sql/analysts/grants.ts';
import { allDatabaseOf } from '../../../sql/client/distributed.ts';
import { type ClusterConfig, clusterXml } from './cluster.ts';
import { httpHandlersXml } from './http_rules.ts';

/** Users with a password, which log in over HTTP. */
const LOGIN_USERS = ['app', 'analyst', ORG_ANALYST] as const;

/**
 * The engine's start script is the one session of the user `default`, and it lasts as long as the
 * engine does. Any further login as `default` fails (USER_SESSION_LIMIT_EXCEEDED), whatever names
 * the user: a header, a parameter or nothing. The engine accepts no password for this user, and any
 * loopback address in its networks admits every local process.
 */
const DEFAULT_USER_SESSIONS_MAX = 1;

const MEBIBYTE = 1024 ** 2;
/**
 * Skip indexes up to this size share one file of a part instead of two files each, so a landing
 * creates a fifth fewer files. The engine's own default from 26.8 on is 1 MiB
 * (ClickHouse/ClickHouse#111816); the engine reads parts of either kind whatever the setting.
 */
const PACKED_INDEX_BYTES_MAX = 65_536;
/**
 * Rows that a merge collects before it computes a projection of them. The engine's default is about
 * a million; smaller blocks bound the memory of the digests in the projection p_hour.
 */
const BACKGROUND_BLOCK_ROWS_MAX = 65_536;
/** Both logs keep a day, written every 10 s. The database `system` ends with the engine. */
const QUERY_LOG_XML = ['query_log', 'part_log']
  .map(
    (table) =>
      `<${table}><database>system</database><table>${table}</table><partition_by>event_date</partition_by><ttl>event_time + INTERVAL 1 DAY</ttl><flush_interval_milliseconds>10000</flush_interval_milliseconds></${table}>`,
  )
  .join('');
/** Maximum run time of a query of the user `analyst`. */
const ANALYST_SECONDS_MAX = 60;

export interface ServerConfig {
  usersFile: string;
  logFile: string;
  backupDir: string;
  /**
   * Name that the server reports in every answer; it tells this server from another one on the same
   * port.
   */
  displayName: string;
  memoryMaxBytes: number;
  /** Disk space that the server leaves free, bytes. */
  diskKeepBytes: number;
  /** Nice value of merges and mutations, see statementNice; 0 for that of the process. */
  mergeNice: number;
  /** True to record statements and new parts in system.query_log and system.part_log. */
  queryLog: boolean;
  /** Absent for an engine that is no shard. */
  cluster?: ClusterConfig | undefined;
}

export interface UsersConfig {
  database: string;
  /** Further name, or pattern that ends with *, of databases that `app` may use. */
  moreDatabases?: string;
  appPassword: string;
  analystPassword: string;
  memoryMaxBytes: number;
  /** True to record statements, see ServerConfig. Those of organizations' analysts are never recorded. */
  queryLog: boolean;
  /** True for a shard of a cluster. */
  sharded?: boolean;
}

const escape = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/**
 * Returns the text of config.xml: caches and pools for two cores and a gigabyte, and no system log
 * that grows without use. The server starts no insert and no merge that would use the reserved disk
 * space: a merge on a full disk may become a part of empty files and replace its sources (seen with
 * 26.7).
 */
export function serverXml({
  usersFile,
  logFile,
  backupDir,
  displayName,
  memoryMaxBytes,
  diskKeepBytes,
  mergeNice,
  queryLog,
  cluster,
}: ServerConfig): string {
  return `<clickhouse>
  <display_name>${escape(displayName)}</display_name>
  <logger><level>warning</level><log>${escape(logFile)}</log><size>20M</size><count>2</count></logger>
  <users_config>${escape(usersFile)}</users_config>
  <max_server_memory_usage>${memoryMaxBytes}</max_server_memory_usage>
  <max_concurrent_queries>100</max_concurrent_queries>
  <max_connections>512</max_connections>
  <keep_alive_timeout>10</keep_alive_timeout>
  ${httpHandlersXml(LOGIN_USERS, escape(displayName))}
  <mark_cache_size>${64 * MEBIBYTE}</mark_cache_size>
  <index_mark_cache_size>${32 * MEBIBYTE}</index_mark_cache_size>
  <primary_index_cache_size>${64 * MEBIBYTE}</primary_index_cache_size>
  <uncompressed_cache_size>${64 * MEBIBYTE}</uncompressed_cache_size>
  <index_uncompressed_cache_size>${16 * MEBIBYTE}</index_uncompressed_cache_size>
  <text_index_tokens_cache_size>${32 * MEBIBYTE}</text_index_tokens_cache_size>
  <text_index_header_cache_size>${32 * MEBIBYTE}</text_index_header_cache_size>
  <text_index_postings_cache_size>${64 * MEBIBYTE}</text_index_postings_cache_size>
  <compiled_expression_cache_size>${16 * MEBIBYTE}</compiled_expression_cache_size>
  <mmap_cache_size>100</mmap_cache_size>
  <background_profile>background</background_profile>
  <background_pool_size>2</background_pool_size>
  <background_merges_mutations_concurrency_ratio>2</background_merges_mutations_concurrency_ratio>
  <background_move_pool_size>1</background_move_pool_size>
  <background_fetches_pool_size>1</background_fetches_pool_size>
  <background_common_pool_size>2</background_common_pool_size>
  <background_schedule_pool_size>8</background_schedule_pool_size>
  <os_threads_nice_value_merge_mutate>${mergeNice}</os_threads_nice_value_merge_mutate>
  <merge_tree>
    <old_parts_lifetime>${REPLACED_PARTS_KEPT_S}</old_parts_lifetime>
    <packed_skip_index_max_bytes>${PACKED_INDEX_BYTES_MAX}</packed_skip_index_max_bytes>
    <number_of_free_entries_in_pool_to_lower_max_size_of_merge>2</number_of_free_entries_in_pool_to_lower_max_size_of_merge>
    <number_of_free_entries_in_pool_to_execute_mutation>2</number_of_free_entries_in_pool_to_execute_mutation>
    <number_of_free_entries_in_pool_to_execute_optimize_entire_partition>2</number_of_free_entries_in_pool_to_execute_optimize_entire_partition>
  </merge_tree>
  ${queryLog ? QUERY_LOG_XML : ''}${cluster === undefined ? '' : `\n  ${clusterXml(cluster, escape)}`}
  <storage_configuration><disks><default><keep_free_space_bytes>${diskKeepBytes}</keep_free_space_bytes></default></disks></storage_configuration>
  <backups><allowed_path>${escape(backupDir)}</allowed_path></backups>
  <access_control_improvements><table_engines_require_grant>true</table_engines_require_grant></access_control_improvements>
</clickhouse>
`;
}

/**
 * Returns the text of users.xml. `default` runs the engine's own start script, may only open ports,
 * and cannot log in over a port. `app` is the service. `analyst` reads the views. `org_analyst` reads
 * the views of one organization at a time, by way of `org_reader` (sql/analysts/org_views.ts).
 * Users with a password may connect from any address that reaches the port.
 */
export function usersXml({
  database,
  moreDatabases,
  appPassword,
  analystPassword,
  memoryMaxBytes,
  queryLog,
  sharded = false,
}: UsersConfig): string {
  const grants = (statements: readonly string[]): string =>
    `<grants>${statements.map((text) => `<query>GRANT ${text}</query>`).join('')}</grants>`;
  const user = (name: string, password: string, profile: string, granted: readonly string[], filters = ''): string =>
    `<${name}><password_sha256_hex>${sha256(password)}</password_sha256_hex><networks><ip>::/0</ip></networks><profile>${profile}</profile><quota>default</quota>${filters}${grants(granted)}</${name}>`;
  const orgDatabase = orgDatabaseOf(database);
  const app = serviceGrants(
    [
      `\`${database}\``,
      `\`${orgDatabase}\``,
      ...(moreDatabases === undefined ? [] : [moreDatabases]),
      ...(sharded ? [database, orgDatabase].map((name) => `\`${allDatabaseOf(name)}\``) : []),
    ],
    sharded,
  );
  const rows = ORG_TABLES.map((table) => `<${table}><filter>${escape(ORG_FILTER)}</filter></${table}>`).join('');
  return `<clickhouse>
  ${profilesXml(memoryMaxBytes, queryLog, sharded)}
  <users>
    <default><no_password/><networks><ip>127.0.0.1</ip><ip>::1</ip></networks><profile>start_script</profile><quota>default</quota>${grants([START_SCRIPT_GRANT])}</default>
    ${user('app', appPassword, 'default', app)}
    ${user('analyst', analystPassword, 'analyst', [...viewGrants(database), ...(sharded ? allViewGrants(database) : [])])}
    ${user(ORG_ANALYST, orgAnalystPassword(appPassword), 'org_analyst', [...viewGrants(orgDatabase), ...(sharded ? allViewGrants(orgDatabase) : [])])}
    ${user(ORG_READER, randomBytes(32).toString('hex'), 'org_analyst', tableGrants(database), `<databases><${database}>${rows}</${database}></databases>`)}
  </users>
  <quotas><default/></quotas>
</clickhouse>
`;
}

/** Returns the `<profiles>` section: the settings of each kind of user. */
function profilesXml(memoryMaxBytes: number, queryLog: boolean, sharded: boolean): string {
  return `<profiles>
    <default>
      <implicit_select>0</implicit_select>
      <async_insert>0</async_insert>
      <use_top_k_dynamic_filtering>0</use_top_k_dynamic_filtering>
      <max_partitions_per_insert_block>1000</max_partitions_per_insert_block>
      <max_threads>2</max_threads>
      <max_insert_threads>1</max_insert_threads>
      <max_bytes_before_external_group_by>${Math.floor(memoryMaxBytes / 4)}</max_bytes_before_external_group_by>
      <max_bytes_before_external_sort>${Math.floor(memoryMaxBytes / 4)}</max_bytes_before_external_sort>
      <http_receive_timeout>60</http_receive_timeout>
      <http_send_timeout>60</http_send_timeout>
      <http_wait_end_of_query>0</http_wait_end_of_query>
      <log_queries>${queryLog ? 1 : 0}</log_queries>
      <log_query_threads>0</log_query_threads>${sharded ? '\n      <distributed_product_mode>global</distributed_product_mode>' : ''}
    </default>
    <background>
      <profile>default</profile>
      <min_insert_block_size_rows>${BACKGROUND_BLOCK_ROWS_MAX}</min_insert_block_size_rows>
    </background>
    <start_script>
      <profile>default</profile>
      <max_sessions_for_user>${DEFAULT_USER_SESSIONS_MAX}</max_sessions_for_user>
    </start_script>
    <analyst>
      <profile>default</profile>
      <readonly>1</readonly>
      <max_execution_time>${ANALYST_SECONDS_MAX}</max_execution_time>
      <max_memory_usage>${Math.floor(memoryMaxBytes / 3)}</max_memory_usage>
      <max_memory_usage_for_user>${Math.floor(memoryMaxBytes / 2)}</max_memory_usage_for_user>
      <max_concurrent_queries_for_user>4</max_concurrent_queries_for_user>
      <allow_introspection_functions>0</allow_introspection_functions>
      <max_result_bytes>${256 * MEBIBYTE}</max_result_bytes>
      <cancel_http_readonly_queries_on_client_close>1</cancel_http_readonly_queries_on_client_close>
    </analyst>
    <org_analyst>
      <profile>default</profile>
      ${orgProfile(Math.floor(memoryMaxBytes / 4))}
    </org_analyst>
  </profiles>`;
}

/**
 * Returns the settings of organizations' analysts, and the settings that a request may change
 * within bounds.
 */
function orgProfile(memoryBytes: number): string {
  const free = Object.entries(ORG_CHANGEABLE);
  const settings = [
    ...Object.entries(orgSettings(memoryBytes)),
    ...free.flatMap(([name, { value }]) => (value === undefined ? [] : [[name, value] as const])),
  ].map(([name, value]) => `<${name}>${value}</${name}>`);
  const constraints = free.map(([name, { min, max }]) => {
    const bounds = `${min === undefined ? '' : `<min>${min}</min>`}${max === undefined ? '' : `<max>${max}</max>`}`;
    return `<${name}>${bounds}<changeable_in_readonly/></${name}>`;
  });
  return `${settings.join('')}<constraints>${constraints.join('')}</constraints>`;
}
