// Gauges of ClickHouse, set by the leader at intervals: how many parts await merging, and how full
// the disk is.
import * as metrics from '../../ops/platform/metrics.ts';
import type { ClickHouse } from '../../sql/client/client.ts';

const LOOK_MS = 15_000;
const QUERY_MS_MAX = 5000;

/** Of several disks, the fullest counts. Object storage reports no capacity and is left out. */
const STORE = `
  SELECT toUInt32(max(parts)) AS parts_max, any(disk.1) AS free_bytes, any(disk.2) AS total_bytes
  FROM (SELECT count() AS parts FROM system.parts WHERE database = currentDatabase() AND active GROUP BY table, partition_id) AS counted,
       (SELECT argMin((toFloat64(unreserved_space), toFloat64(total_space)), unreserved_space / total_space) AS disk FROM system.disks WHERE type = 'Local') AS disks`;

export interface StoreFacts {
  /** Parts of the partition that has the most. */
  parts_max: number;
  free_bytes: number;
  total_bytes: number;
}

const NOT_THE_LEADER: StoreFacts = { parts_max: 0, free_bytes: 0, total_bytes: 0 };

/** @throws StoreUnavailable */
export async function readStoreFacts(clickhouse: ClickHouse): Promise<StoreFacts> {
  const [facts] = await clickhouse.rows<StoreFacts>({ name: 'store_facts', sql: STORE, timeoutMs: QUERY_MS_MAX });
  return facts ?? NOT_THE_LEADER;
}

/**
 * Sets the gauges until the timer is cleared. They keep their values while the store is
 * unavailable.
 */
export function startStoreGauges(clickhouse: ClickHouse, isLeader: () => boolean): NodeJS.Timeout {
  const look = async (): Promise<void> => {
    const { parts_max, free_bytes, total_bytes } = isLeader() ? await readStoreFacts(clickhouse) : NOT_THE_LEADER;
    metrics.clickhousePartsMax.set(parts_max);
    metrics.clickhouseDiskFreeBytes.set(free_bytes);
    metrics.clickhouseDiskBytes.set(total_bytes);
  };
  return setInterval(() => {
    look().catch(() => undefined);
  }, LOOK_MS);
}
