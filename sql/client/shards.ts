// The store as the service sees it: its shards, each with a range of partitions of the ingest log, and a
// client that reads all of them. A store of one server is one shard with every partition.
import { checkRanges, type ShardSetting } from '../../schemas/shards.ts';
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
  has: (partition: number) => boolean;
}

export interface Store {
  /**
   * Reads all shards. What it writes goes to the first shard: rows that belong to no partition, such as
   * scores of LLM judges, incidents and the audit log.
   */
  clickhouse: ClickHouse;
  shards: readonly Shard[];
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
  cluster: null,
  close: () => clickhouse.close(),
});

/**
 * Creates the clients of the store. It sends nothing yet.
 * @param partitions number of partitions of the ingest log
 * @throws ShardsError if the shards do not take all of them; Error if no server is named
 */
export function openStore(
  env: StoreSettings,
  partitions: number,
  options: Omit<ClickHouseOptions, 'url' | 'reads'>,
): Store {
  const { SERVICE_CLICKHOUSE_SHARDS: shards, SERVICE_CLICKHOUSE_URL: url } = env;
  const [first] = shards?.flatMap(({ urls }) => urls) ?? [url];
  if (first === undefined) throw new Error('the store has no server');
  if (shards === undefined) return storeOfOne(new ClickHouse({ ...options, url: first }));
  checkRanges(shards, partitions);
  const opened = shards.map(({ name, from, to, urls }, index): Shard => {
    const [clickhouse = new ClickHouse({ ...options, url: first }), ...replicas] = urls.map(
      (one) => new ClickHouse({ ...options, url: one }),
    );
    return { name, index, clickhouse, replicas, has: (partition) => partition >= from && partition <= to };
  });
  const database = opened[0]?.clickhouse.database ?? '';
  const clickhouse = new ClickHouse({
    ...options,
    url: first,
    reads: { urls: shards.flatMap(({ urls }) => urls), database: allDatabaseOf(database) },
  });
  return {
    clickhouse,
    shards: opened,
    cluster: env.SERVICE_CLICKHOUSE_CLUSTER ?? DEFAULT_CLUSTER,
    close: async () => {
      const own = opened.flatMap((shard) => [shard.clickhouse, ...shard.replicas]);
      await Promise.all([clickhouse, ...own].map((client) => client.close()));
    },
  };
}
