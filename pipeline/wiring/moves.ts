// Moves partitions to the shards of the setting, once every shard can take rows and every server reads
// all of them. Until then they stay where they are.
import type { ClickHouse } from '../../sql/client/client.ts';
import type { Shard } from '../../sql/client/shards.ts';
import { countClusterShards } from '../../sql/stores/engine.ts';
import { untilDone } from './parts.ts';
import type { Platform } from './platform.ts';
import type { StoreUp } from './store.ts';

/** Resolves when the record of the shards says what the setting says, however long a shard is away. */
export async function movePartitions(platform: Platform, storeUp: Pick<StoreUp, 'shards'>): Promise<void> {
  const { logger, places, store } = platform;
  const { cluster } = store;
  if (cluster === null || !places.isToMove) return;
  await Promise.all(storeUp.shards.map(({ ready }) => ready));
  await untilDone(logger, 'moving partitions to other shards', async () => {
    for (const shard of store.shards)
      for (const server of [shard.clickhouse, ...shard.replicas])
        await checkCluster(server, shard, cluster, store.shards.length);
    await places.move();
  });
  logger.info({ shards: places.names }, 'the partitions are in the shards of the setting');
}

/** @throws Error if a server would read fewer shards than the setting names */
async function checkCluster(server: ClickHouse, { name }: Shard, cluster: string, wanted: number): Promise<void> {
  const shards = await countClusterShards(server, cluster);
  if (shards < wanted)
    throw new Error(
      `a server of the shard ${name} has ${shards} shards in its cluster ${cluster}, and SERVICE_CLICKHOUSE_SHARDS names ${wanted}; its reads would lack rows`,
    );
}
