// Shows how well ClickHouse keeps up with merging, looked at by the leader now and then.
import * as metrics from '../../ops/metrics.ts';
import type { ClickHouse } from '../../sql/client.ts';

const LOOK_MS = 15_000;
const QUERY_MS_MAX = 5000;

const MOST_PARTS = `
  SELECT toUInt32(max(parts)) AS parts_max FROM (
    SELECT count() AS parts FROM system.parts WHERE database = currentDatabase() AND active GROUP BY table, partition_id
  )`;

/** Looks until the timer is cleared. A store that is away leaves the last value. */
export function startStoreGauges(clickhouse: ClickHouse, isLeader: () => boolean): NodeJS.Timeout {
  const look = async (): Promise<void> => {
    const [row] = isLeader()
      ? await clickhouse.rows<{ parts_max: number }>({ name: 'most_parts', sql: MOST_PARTS, timeoutMs: QUERY_MS_MAX })
      : [{ parts_max: 0 }];
    metrics.clickhousePartsMax.set(row?.parts_max ?? 0);
  };
  return setInterval(() => {
    look().catch(() => undefined);
  }, LOOK_MS);
}
