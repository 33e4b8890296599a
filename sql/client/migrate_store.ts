// Migrates the shards of the store, each by itself, so that one which is away keeps none from its work.
import type { ClickHouse } from './client.ts';
import { createDistributed } from './distributed.ts';
import { migrate, unknownMigrations } from './migrate.ts';
import type { Shard, Store } from './shards.ts';

/** The shards have different schemas, and this version cannot make them the same. */
export class MixedSchema extends Error {}

/**
 * Brings a shard to the newest schema.
 * @param replicated name of the cluster whose servers replicate the shard, if there is one
 * @throws StoreUnavailable; MixedSchema if a newer version has migrated this shard and not every other one
 */
export async function migrateShard(store: Store, shard: Shard, replicated: string | undefined): Promise<void> {
  const { cluster } = store;
  await migrate(shard.clickhouse, { cluster: replicated, isShard: cluster !== null });
  if (cluster === null) return;
  await createDistributed(shard.clickhouse, cluster);
  // A replica that is away gets its tables with the next start; until then reads begin elsewhere.
  await Promise.allSettled(shard.replicas.map((replica) => createDistributed(replica, cluster)));
  await checkNewer(store, shard);
}

/** Compares the migrations of a newer version, if there are any, with those of the shards that answer. */
async function checkNewer({ shards }: Store, shard: Shard): Promise<void> {
  const newer = async (client: ClickHouse): Promise<string> => (await unknownMigrations(client)).toSorted().join(', ');
  const own = await newer(shard.clickhouse);
  for (const other of shards) {
    const theirs = await newer(other.clickhouse).catch(() => own);
    if (theirs !== own)
      throw new MixedSchema(
        `shard ${shard.name} has the migrations ${own || 'of this version'} and shard ${other.name} ${theirs || 'those of this version'}; start the newest version, which migrates both`,
      );
  }
}
