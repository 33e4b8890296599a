// The store as the service sees it: its shards, each with a range of partitions of the ingest log, and a
// client that reads all of them. A store of one server is one shard with every partition.
import { partitionOf } from '../../schemas/partition_of.ts';
import type { PartitionPlace, ShardSetting } from '../../schemas/shards.ts';
import { ClickHouse, type ClickHouseOptions } from './client.ts';
import { allDatabaseOf } from './distributed.ts';

/** Name of the cluster in the configuration of the servers where SERVICE_CLICKHOUSE_CLUSTER names none. */
const DEFAULT_CLUSTER = 'millrace';

/** A shard: its rows, fences, look-ups and moves stay on its server. */
export interface Shard {
  /** Empty for the only shard. */
  name: string;
  /** Place among the shards. The numbers of documents depend on it. */
  index: number;
  /** Client of the shard alone. */
  clickhouse: ClickHouse;
  /** Clients of the shard's other servers, which only coordinate reads. */
  replicas: readonly ClickHouse[];
  /** Whether rows of a partition land here. */
  has: (partition: number) => boolean;
}

export interface Store {
  /**
   * Reads all shards. What it writes goes to the first shard: rows that belong to no partition, such as
   * scores of LLM judges, incidents and the audit log.
   */
  clickhouse: ClickHouse;
  shards: readonly Shard[];
  /**
   * Returns a client that reads the only shard with rows of the ingest log of a trace; one that reads all shards
   * where its partition has moved. It finds no rows that belong to no partition.
   */
  ofTrace: (org_id: string, trace_id: string) => ClickHouse;
  /** Returns the shards in which rows of a partition landed before it moved, the newest first. */
  before: (partition: number) => Shard[];
  /** Name of the cluster through which reads reach all shards; null for a single server. */
  cluster: string | null;
  close: () => Promise<void>;
}

export interface StoreSettings {
  SERVICE_CLICKHOUSE_URL?: string | undefined;
  SERVICE_CLICKHOUSE_SHARDS?: readonly ShardSetting[] | undefined;
  SERVICE_CLICKHOUSE_CLUSTER?: string | undefined;
}

/** Returns a server as the only shard of a store. */
export const storeOfOne = (clickhouse: ClickHouse): Store => ({
  clickhouse,
  shards: [{ name: '', index: 0, clickhouse, replicas: [], has: () => true }],
  ofTrace: () => clickhouse,
  before: () => [],
  cluster: null,
  close: () => clickhouse.close(),
});

/** Which shard has the rows of each partition; see ShardMap. */
export interface Places {
  readonly names: readonly string[];
  /** Number of partitions; 0 for a single server. */
  readonly partitions: number;
  placeOf: (partition: number) => PartitionPlace;
}

/**
 * Creates the clients of the store. It sends nothing yet.
 * @throws Error if no server is named
 */
export function openStore(
  env: StoreSettings,
  places: Places,
  options: Omit<ClickHouseOptions, 'url' | 'reads'>,
): Store {
  const { SERVICE_CLICKHOUSE_SHARDS: shards, SERVICE_CLICKHOUSE_URL: url } = env;
  // The first shard that the store had, wherever the setting names it.
  const home = shards?.find(({ name }) => name === places.names[0]) ?? shards?.[0];
  const first = home === undefined ? url : home.urls[0];
  if (first === undefined) throw new Error('the store has no server');
  if (shards === undefined) return storeOfOne(new ClickHouse({ ...options, url: first }));
  const opened = shards.map(({ name, urls }): Shard => {
    const [clickhouse = new ClickHouse({ ...options, url: first }), ...replicas] = urls.map(
      (one) => new ClickHouse({ ...options, url: one }),
    );
    return {
      name,
      index: places.names.indexOf(name),
      clickhouse,
      replicas,
      has: (partition) => places.placeOf(partition).now === name,
    };
  });
  const database = opened[0]?.clickhouse.database ?? '';
  const clickhouse = new ClickHouse({
    ...options,
    url: first,
    reads: { urls: shards.flatMap(({ urls }) => urls), database: allDatabaseOf(database) },
  });
  const ownReads = new Map(
    shards.map(({ name, urls: [one = first, ...others] }) => [
      name,
      new ClickHouse({ ...options, url: one, reads: { urls: [one, ...others], database, first: 0 } }),
    ]),
  );
  return {
    clickhouse,
    shards: opened,
    ofTrace: (org_id, trace_id) => {
      const { now, before } = places.placeOf(partitionOf(org_id, trace_id, places.partitions));
      return before.length > 0 ? clickhouse : (ownReads.get(now) ?? clickhouse);
    },
    before: (partition) =>
      places.placeOf(partition).before.flatMap((name) => opened.find((shard) => shard.name === name) ?? []),
    cluster: env.SERVICE_CLICKHOUSE_CLUSTER ?? DEFAULT_CLUSTER,
    close: async () => {
      const own = opened.flatMap((shard) => [shard.clickhouse, ...shard.replicas]);
      await Promise.all([clickhouse, ...own, ...ownReads.values()].map((client) => client.close()));
    },
  };
}
