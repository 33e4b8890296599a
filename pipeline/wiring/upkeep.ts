// Wiring of upkeep: the janitor of the ingest log, the sweeper of replaced parts, and the gauges.
import { REPLACED_PARTS_KEPT_S } from '../../ops/platform/clickhouse/replaced_parts.ts';
import { startPartSweeper } from '../landing/part_sweeper.ts';
import { startJanitor } from '../worker/log_janitor.ts';
import { startStreamsChange } from '../worker/streams_change.ts';
import type { DataPlane } from './data_plane.ts';
import { startGauges } from './gauges.ts';
import type { Platform } from './platform.ts';
import type { Services } from './services.ts';
import type { StoreUp } from './store.ts';
import { startStoreGauges } from './store_gauges.ts';

/** Starts upkeep. `stop` resolves once no sweep is under way. */
export function startUpkeep(
  { env, log, logger, store, partitions }: Platform,
  { sync }: Pick<StoreUp, 'sync'>,
  dataPlane: DataPlane,
  services: Services,
): { stop: () => Promise<void> } {
  const { ownership } = dataPlane;
  const isLeader = (): boolean => ownership.isLeader;
  const janitor = startJanitor(log, logger, () => (isLeader() ? ownership.checkpoints : null));
  const stopChange = startStreamsChange({ env, log, logger, partitions });
  const gauges = startGauges(dataPlane, services);
  const servers = store.shards.map(({ clickhouse }) => clickhouse);
  const storeGauges = startStoreGauges(servers, isLeader);
  const isEmbedded = env.SERVICE_CLICKHOUSE_DATA_DIR !== undefined;
  const sweeps = (isEmbedded ? servers : []).map((clickhouse) =>
    startPartSweeper({ clickhouse, logger, isLeader, sync, keptS: REPLACED_PARTS_KEPT_S }),
  );
  return {
    stop: async () => {
      janitor.stop();
      stopChange();
      clearInterval(gauges);
      clearInterval(storeGauges);
      await Promise.all(sweeps.map((end) => end()));
    },
  };
}
