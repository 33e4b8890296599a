// Gauges of ClickHouse, set by the leader at intervals: how many parts await merging, and how full
// the disk is.
import * as metrics from '../../ops/platform/metrics.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import { readEngineLoad } from '../../sql/stores/engine.ts';

const LOOK_MS = 15_000;

export interface StoreFacts {
  /** Parts of the partition that has the most. */
  parts_max: number;
  free_bytes: number;
  total_bytes: number;
}

const NOT_THE_LEADER: StoreFacts = { parts_max: 0, free_bytes: 0, total_bytes: 0 };

/** @throws StoreUnavailable */
export async function readStoreFacts(clickhouse: ClickHouse): Promise<StoreFacts> {
  return (await readEngineLoad(clickhouse, {}))[0] ?? NOT_THE_LEADER;
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
