// The shards of the store as the log knows them, and schemas that are not the same in all.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseShards } from '../../../schemas/shards.ts';
import { connectNats } from '../../../ops/platform/nats/connect.ts';
import { ShardMap } from '../../../ops/platform/nats/shard_map.ts';
import { LOG_PLACE_KEY, type Log, openLog, settle } from '../../../ops/platform/nats/open_log.ts';
import { createClickHouse, type ClickHouse } from '../../../sql/client/client.ts';
import { migrate } from '../../../sql/client/migrate.ts';
import { migrateShard, MixedSchema } from '../../../sql/client/migrate_store.ts';
import type { Shard, Store } from '../../../sql/client/shards.ts';
import { startShardEngines, type ShardEngines, TEST_CLUSTER } from '../../support/shard_engines.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';

const TWO = parseShards('a:0-3=http://app:secret@ch-a:8123/millrace b:4-7=http://app:secret@ch-b:8123/millrace');
const ELSEWHERE = parseShards('a:0-3=http://app:secret@ch-x:8123/millrace b:4-7=http://app:secret@ch-y:8123/millrace');
const THREE = parseShards(
  'a:0-2=http://app:secret@ch-a:8123/millrace c:3-3=http://app:secret@ch-c:8123/millrace b:4-7=http://app:secret@ch-b:8123/millrace',
);
const WITHOUT_A = parseShards('b:0-7=http://app:secret@ch-b:8123/millrace');
const PARTITIONS = 8;

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

  const unknown: string[] = [];
  const open = async (settings: typeof TWO | undefined): Promise<ShardMap> => {
    return ShardMap.open(log, settings, PARTITIONS, (error) => unknown.push(error.message));
  };
  beforeEach(() => {
    unknown.length = 0;
  });

  it('are those of the first process; their servers may move', async () => {
    const map = await open(TWO);
    expect([map.names, map.placeOf(3), map.placeOf(4)]).toEqual([
      ['a', 'b'],
      { now: 'a', before: [] },
      { now: 'b', before: [] },
    ]);
    expect((await open(ELSEWHERE)).placeOf(4)).toEqual({ now: 'b', before: [] });
    // Versions that cannot move partitions read this form.
    const record = await (await log.bucket('service')).get('shards');
    expect(record?.json()).toEqual([
      { name: 'a', from: 0, to: 3 },
      { name: 'b', from: 4, to: 7 },
    ]);
    await expect(open(WITHOUT_A)).rejects.toThrow(
      'the store of this log has rows in the shard a, which the setting does not name',
    );
    await expect(open(undefined)).rejects.toThrow('the store of this log has a, b, and the setting names none');
  });

  it('get partitions that every process follows', async () => {
    const [early, blind] = [
      await open([...TWO, ...parseShards('c=http://app:secret@ch-c:8123/millrace')]),
      await open(TWO),
    ];
    // The place of a shard among the names is known before rows land in it.
    expect([early.names, early.isToMove]).toEqual([['a', 'b', 'c'], false]);
    const moved: number[][] = [];
    early.onChange((partitions) => moved.push(partitions));
    const late = await open(THREE);
    expect([late.isToMove, late.placeOf(3)]).toEqual([true, { now: 'a', before: [] }]);
    await late.move();
    expect([late.isToMove, late.placeOf(3)]).toEqual([false, { now: 'c', before: ['a'] }]);
    await eventually(() => moved.length > 0, { what: 'the news' });
    expect([moved, early.placeOf(3), early.names]).toEqual([[[3]], { now: 'c', before: ['a'] }, ['a', 'b', 'c']]);
    expect(early.revision).toBe(late.revision);
    await eventually(() => unknown.length > 0, { what: 'a process that does not know the shard' });
    expect([unknown[0], blind.placeOf(3).now]).toEqual([
      'SERVICE_CLICKHOUSE_SHARDS: the store of this log has rows in the shard c, which the setting does not name',
      'a',
    ]);
  });

  it('of one server stay one server', async () => {
    await open(undefined);
    await expect(open(TWO)).rejects.toThrow('the store of this log has a single server');
  });

  it('of a version without shards are one server', async () => {
    await settle(log, LOG_PLACE_KEY, () => Promise.resolve({ base: 0 }));
    await expect(open(TWO)).rejects.toThrow('the store of this log has a single server');
    expect((await open(undefined)).placeOf(1)).toEqual({ now: '', before: [] });
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
    store = {
      clickhouse: first,
      shards,
      ofTrace: () => first,
      before: () => [],
      cluster: TEST_CLUSTER,
      close: () => Promise.resolve(),
    };
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
