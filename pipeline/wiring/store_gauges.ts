// Shows how well ClickHouse keeps up with merging, and how full its disk is, looked at by the leader now and then.
import * as metrics from '../../ops/platform/metrics.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import { readEngineLoad } from '../../sql/stores/engine.ts';

const LOOK_MS = 15_000;

export interface StoreFacts {
  /** Of the partition that has most of them. */
  parts_max: number;
  free_bytes: number;
  total_bytes: number;
}

const NOT_THE_LEADER: StoreFacts = { parts_max: 0, free_bytes: 0, total_bytes: 0 };

/** @throws StoreUnavailable */
export async function readStoreFacts(clickhouse: ClickHouse): Promise<StoreFacts> {
  return (await readEngineLoad(clickhouse, {}))[0] ?? NOT_THE_LEADER;
}

/** Looks until the timer is cleared. A store that is away leaves the last values. */
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
