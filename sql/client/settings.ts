// Settings of statements: what bounds a read, and how DDL runs on a cluster.
import type { ClickHouseSettings } from '@clickhouse/client';

/** Engine memory that one read may use. */
const READ_MEMORY_BYTES_MAX = 1_000_000_000;
/**
 * Maximum size of a set of IN that the engine also keeps sorted, to skip granules by. With three
 * million trace keys the sorted copy raised memory from 172 to more than 400 MB, and a set that
 * large skips almost nothing.
 */
const INDEXED_SET_MAX = 100_000;

/** Settings of every read. */
export const READ: ClickHouseSettings = {
  readonly: '2',
  // The engine cancels a read on disconnect only if the read is read-only.
  cancel_http_readonly_queries_on_client_close: 1,
  // Until the engine (26.7) has cached the statistics of a table, minutes after its start, each read with a
  // condition opens a file of every part for them. Reads here do not depend on them.
  use_statistics: 0,
};

/**
 * Settings for DDL on a cluster. An unavailable replica runs the DDL when it is back, and does not
 * delay the start of the service until then. By default the server waits 180 s for the replica and
 * then fails.
 */
export const CLUSTER_DDL: ClickHouseSettings = {
  distributed_ddl_output_mode: 'null_status_on_timeout',
  distributed_ddl_task_timeout: '2',
};

/** The part of a read that decides its settings. */
interface BoundedRead {
  name: string;
  timeoutMs: number;
  bytesMax?: number | undefined;
  memoryBytesMax?: number | undefined;
  indexedSetMax?: number | undefined;
}

export function readSettings({
  name,
  timeoutMs,
  bytesMax,
  memoryBytesMax,
  indexedSetMax = INDEXED_SET_MAX,
}: BoundedRead): ClickHouseSettings {
  return {
    log_comment: name,
    ...READ,
    max_execution_time: Math.ceil(timeoutMs / 1000),
    max_memory_usage: String(memoryBytesMax ?? READ_MEMORY_BYTES_MAX),
    use_index_for_in_with_subqueries_max_values: String(indexedSetMax),
    ...(bytesMax === undefined ? {} : { max_result_bytes: String(bytesMax), result_overflow_mode: 'throw' as const }),
  };
}
