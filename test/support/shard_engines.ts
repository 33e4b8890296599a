// Several embedded engines on this machine that form one ClickHouse cluster, for tests that need
// shards. Each engine is a TestEngine of its own: a test can kill, stop and start it, and it comes
// back on the same ports.
import { randomBytes } from 'node:crypto';
import type { ClusterConfig } from '../../ops/launch/clickhouse/cluster.ts';
import { freePort } from '../../ops/launch/process/ports.ts';
import { createClickHouse } from '../../sql/client/client.ts';
import { allDatabaseOf, createDistributed } from '../../sql/client/distributed.ts';
import { migrate } from '../../sql/client/migrate.ts';
import { runStatement, startTestEngine, type TestEngine, type TestEngineOptions } from './clickhouse.ts';

/** Name of the cluster on every engine: the one that workers use by default. */
export const TEST_CLUSTER = 'millrace';

export interface ShardEngines {
  /** In the order of the shards. app may use every test_* database on them. */
  engines: readonly TestEngine[];
  /** Clusters as the engines know them, in the same order. */
  clusters: readonly ClusterConfig[];
  /** Stops the engines and removes their folders. Idempotent. */
  remove(): Promise<void>;
}

/** Database on every shard with all tables and views, and a second one that reads every shard. */
export interface ShardDatabase {
  database: string;
  /** URLs of the shards' own tables, in the order of the shards. */
  urls: readonly string[];
  /** URLs of the tables that read every shard: one URL for each shard that can answer. */
  allUrls: readonly string[];
  drop(): Promise<void>;
}

/** Starts engines that form one cluster. The caller's afterAll must call remove(). */
export async function startShardEngines(count: number, options: TestEngineOptions = {}): Promise<ShardEngines> {
  const ports = new Set<number>();
  while (ports.size < count) ports.add(await freePort());
  const shards = [...ports].map((tcpPort) => ({ host: '127.0.0.1', tcpPort }));
  const secret = randomBytes(16).toString('hex');
  const clusters = shards.map(({ tcpPort }) => ({ name: TEST_CLUSTER, secret, tcpPort, shards }));
  const started = await Promise.allSettled(
    clusters.map((cluster) => startTestEngine({ moreDatabases: 'test_*', ...options, cluster })),
  );
  const engines = started.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  const remove = async (): Promise<void> => {
    await Promise.all(engines.map((engine) => engine.remove()));
  };
  const failed = started.find((result) => result.status === 'rejected');
  if (failed !== undefined) {
    await remove();
    throw failed.reason;
  }
  return { engines, clusters, remove };
}

/**
 * Creates a database on every engine, with all tables and views and no rows, and one that reads the
 * tables of all shards. The caller's afterAll must call drop() unless it removes the engines.
 */
export async function createShardDatabase({ engines }: ShardEngines): Promise<ShardDatabase> {
  const database = `test_${randomBytes(6).toString('hex')}`;
  const all = allDatabaseOf(database);
  for (const { url } of engines) {
    const client = createClickHouse({ url: new URL(`/${database}`, url).href });
    await migrate(client, {});
    await createDistributed(client, TEST_CLUSTER);
    await client.close();
  }
  const urlsOf = (name: string): string[] => engines.map(({ url }) => new URL(`/${name}`, url).href);
  return {
    database,
    urls: urlsOf(database),
    allUrls: urlsOf(all),
    async drop() {
      for (const { url } of engines)
        for (const name of [all, database]) await runStatement(url, `DROP DATABASE IF EXISTS ${name} SYNC`, '');
    },
  };
}
