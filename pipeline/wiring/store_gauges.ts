// Gauges of ClickHouse, set by the leader at intervals: how many parts await merging, and how full
// the disk is. Of several shards they show the worst one.
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

/**
 * Returns the facts of the shards that answer.
 * @throws StoreUnavailable if none does
 */
export async function readStoreFacts(shards: readonly ClickHouse[]): Promise<StoreFacts> {
  const loads = await Promise.allSettled(shards.map((clickhouse) => readEngineLoad(clickhouse, {})));
  const failed = loads.filter((load) => load.status === 'rejected');
  metrics.clickhouseShardsAway.set(failed.length);
  if (failed.length === shards.length) throw failed[0]?.reason;
  const known = loads.flatMap((load) => (load.status === 'fulfilled' ? load.value : []));
  const [fullest = NOT_THE_LEADER] = known.toSorted((a, b) => shareFree(a) - shareFree(b));
  return { ...fullest, parts_max: Math.max(0, ...known.map(({ parts_max }) => parts_max)) };
}

const shareFree = ({ free_bytes, total_bytes }: StoreFacts): number => free_bytes / Math.max(1, total_bytes);

/**
 * Sets the gauges until the timer is cleared. They keep their values while the store is
 * unavailable.
 */
export function startStoreGauges(shards: readonly ClickHouse[], isLeader: () => boolean): NodeJS.Timeout {
  const look = async (): Promise<void> => {
    if (!isLeader()) metrics.clickhouseShardsAway.set(0);
    const { parts_max, free_bytes, total_bytes } = isLeader() ? await readStoreFacts(shards) : NOT_THE_LEADER;
    metrics.clickhousePartsMax.set(parts_max);
    metrics.clickhouseDiskFreeBytes.set(free_bytes);
    metrics.clickhouseDiskBytes.set(total_bytes);
  };
  return setInterval(() => {
    look().catch(() => undefined);
  }, LOOK_MS);
}
