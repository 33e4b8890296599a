// The shards of the store as the log knows them, and schemas that are not the same in all.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseShards } from '../../../schemas/shards.ts';
import { connectNats } from '../../../ops/platform/nats/connect.ts';
import { fixShards } from '../../../ops/platform/nats/fixed_shards.ts';
import { LOG_PLACE_KEY, type Log, openLog, settle } from '../../../ops/platform/nats/open_log.ts';
import { createClickHouse, type ClickHouse } from '../../../sql/client/client.ts';
import { migrate } from '../../../sql/client/migrate.ts';
import { migrateShard, MixedSchema } from '../../../sql/client/migrate_store.ts';
import type { Shard, Store } from '../../../sql/client/shards.ts';
import { startShardEngines, type ShardEngines, TEST_CLUSTER } from '../../support/shard_engines.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';

const TWO = parseShards('a:0-3=http://app:secret@ch-a:8123/millrace b:4-7=http://app:secret@ch-b:8123/millrace');
const MOVED = parseShards('a:0-3=http://app:secret@ch-x:8123/millrace b:4-7=http://app:secret@ch-y:8123/millrace');
const OTHER = parseShards('a:0-5=http://app:secret@ch-a:8123/millrace b:6-7=http://app:secret@ch-b:8123/millrace');

describe('the shards of a log', () => {
  let nats: TestNats;
  let log: Log;
  beforeEach(async () => {
    nats = await startTestNats();
    log = await openLog(await connectNats({ url: nats.url, name: 'test', waitMs: 5000 }), {
      replicas: 1,
      logBytesMax: 64 * 1024 * 1024,
    });
  });
  afterEach(async () => {
    await log.nc.close();
    await nats.remove();
  });

  it('are those of the first process; their servers may move', async () => {
    await fixShards(log, TWO);
    await fixShards(log, MOVED);
    await expect(fixShards(log, OTHER)).rejects.toThrow(
      'SERVICE_CLICKHOUSE_SHARDS: the store of this log has a:0-3 b:4-7, and the setting a:0-5 b:6-7',
    );
    await expect(fixShards(log, undefined)).rejects.toThrow('has a:0-3 b:4-7, and the setting a single server');
  });

  it('of one server stay one server', async () => {
    await fixShards(log, undefined);
    await expect(fixShards(log, TWO)).rejects.toThrow('the store of this log has a single server');
  });

  it('of a version without shards are one server', async () => {
    await settle(log, LOG_PLACE_KEY, () => Promise.resolve({ base: 0 }));
    await expect(fixShards(log, TWO)).rejects.toThrow('the store of this log has a single server');
    await fixShards(log, undefined);
  });
});

describe('the schema of the shards', () => {
  let engines: ShardEngines;
  let clients: ClickHouse[];
  let store: Store;
  beforeEach(async () => {
    engines = await startShardEngines(2);
    clients = engines.engines.map(({ url }) => createClickHouse({ url }));
    const shards = clients.map((clickhouse, index): Shard => ({
      name: `s${index}`,
      index,
      clickhouse,
      replicas: [],
      has: () => true,
    }));
    const [first] = clients;
    if (first === undefined) throw new Error('no shard');
    store = { clickhouse: first, shards, cluster: TEST_CLUSTER, close: () => Promise.resolve() };
  });
  afterEach(async () => {
    await Promise.all(clients.map((client) => client.close()));
    await engines.remove();
  });

  it('is refused where a newer version has migrated one of them', async () => {
    const [first, second] = store.shards;
    if (first === undefined || second === undefined) throw new Error('no shard');
    await migrateShard(store, first, undefined);
    await migrateShard(store, second, undefined);
    const newer = { migrations: [{ name: '9999_add_future.sql', sql: 'SELECT 1' }], views: [] };
    await migrate(second.clickhouse, { scripts: newer });
    await expect(migrateShard(store, first, undefined)).rejects.toThrow(MixedSchema);
    await migrate(first.clickhouse, { scripts: newer });
    await migrateShard(store, first, undefined);
  });

  it('is made in one while the other is away, and has the same Distributed tables when it changes', async () => {
    const [first] = store.shards;
    const [, other] = engines.engines;
    if (first === undefined || other === undefined) throw new Error('no shard');
    await other.stop();
    await migrateShard(store, first, undefined);
    const columns = (database: string) =>
      first.clickhouse.rows<{ name: string }>({
        name: 'test',
        sql: `SELECT name FROM system.columns WHERE database = '${database}' AND table = 'spans' ORDER BY position`,
        timeoutMs: 9000,
      });
    expect(await columns('millrace_all')).toEqual(await columns('millrace'));
    const wider = {
      migrations: [{ name: '9998_widen_spans.sql', sql: 'ALTER TABLE spans ADD COLUMN more UInt8' }],
      views: [],
    };
    await migrate(first.clickhouse, { scripts: wider });
    await migrateShard(store, first, undefined);
    expect((await columns('millrace_all')).at(-1)).toEqual({ name: 'more' });
    await other.start();
  });
});
