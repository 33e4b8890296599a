// Parts that merges have replaced, on the real engine: they stay long enough to survive a power
// loss, and the sweeper removes them when the engine does not.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { REPLACED_PARTS_KEPT_S } from '../../../ops/platform/clickhouse/replaced_parts.ts';
import { createLogger } from '../../../ops/platform/logger.ts';
import { startPartSweeper } from '../../../pipeline/landing/part_sweeper.ts';
import { type ClickHouse, createClickHouse } from '../../../sql/client/client.ts';
import { startTestEngine, type TestEngine } from '../../support/clickhouse.ts';
import { eventually } from '../../support/wait.ts';

let engine: TestEngine;
let clickhouse: ClickHouse;

beforeAll(async () => {
  engine = await startTestEngine();
  clickhouse = createClickHouse({ url: engine.url });
  await clickhouse.createDatabase();
});
afterAll(async () => {
  await clickhouse.close();
  await engine.remove();
});

const run = (sql: string) => clickhouse.execute({ name: 'test', sql, timeoutMs: 20_000 });
const parts = async (): Promise<{ active: number; replaced: number }> => {
  const [row] = await clickhouse.rows<{ active: number; replaced: number }>({
    name: 'test',
    sql: "SELECT toUInt32(countIf(p.active)) AS active, toUInt32(countIf(NOT p.active)) AS replaced FROM system.parts AS p WHERE database = currentDatabase() AND table = 't'",
    timeoutMs: 20_000,
  });
  return row ?? { active: 0, replaced: 0 };
};
let after = { active: 0, replaced: 0 };
/** Creates a table and merges its five parts into one. */
const merged = async (settings: string): Promise<void> => {
  await run('DROP TABLE IF EXISTS t SYNC');
  await run(`CREATE TABLE t (k UInt64, v UInt8) ENGINE = MergeTree PARTITION BY k % 1 ORDER BY k ${settings}`);
  for (let part = 0; part < 5; part += 1) await run(`INSERT INTO t SELECT number, 0 FROM numbers(10)`);
  await run('OPTIMIZE TABLE t FINAL');
  after = await parts();
  expect([after.active, after.replaced]).toEqual([
    1,
    expect.toSatisfy((count: number) => count >= 5, 'at least the five'),
  ]);
};

it('a replaced part stays for two minutes, as its successor is not synced', async () => {
  const [row] = await clickhouse.rows<{ value: string }>({
    name: 'test',
    sql: "SELECT value FROM system.merge_tree_settings WHERE name = 'old_parts_lifetime'",
    timeoutMs: 20_000,
  });
  expect([row?.value, REPLACED_PARTS_KEPT_S]).toEqual(['120', 120]);
});

/**
 * Number of sweeper checks after which it would have acted: a part is due after one second, and
 * checks are at least 50 ms apart.
 */
const LOOKS = 60;
/** An expression of some 12 seconds: one sleep has 3 at most, and equal ones would be one. */
const SLOW = Array.from({ length: 4 }, (_, n) => `sleep(${3 - n / 50})`).join(' + ');

describe('with an engine that does not get to it', () => {
  const stops: (() => Promise<void>)[] = [];
  let synced = 0;
  let looks = 0;
  let isLeader = true;
  /**
   * Resolves once the sweeper has checked often enough to have acted. A check begins only after the
   * previous one has ended.
   */
  const looked = () => eventually(() => looks >= LOOKS, { what: 'looks of the sweeper' });
  const start = (keptS: number): void => {
    const sync = (): Promise<void> => {
      synced += 1;
      return Promise.resolve();
    };
    const logger = createLogger('test', 'silent');
    const leads = (): boolean => {
      looks += 1;
      return isLeader;
    };
    stops.push(startPartSweeper({ clickhouse, logger, isLeader: leads, sync, keptS, lookMs: 50 }));
  };
  beforeEach(async () => {
    await Promise.all(stops.splice(0).map((stop) => stop()));
    [synced, looks, isLeader] = [0, 0, true];
    await merged('SETTINGS old_parts_lifetime = 1, merge_tree_clear_old_parts_interval_seconds = 100000');
  });
  afterAll(() => Promise.all(stops.map((stop) => stop())));

  it('a replaced part that is old enough is removed after a sync, and no row with it', async () => {
    start(-14);
    await eventually(async () => (await parts()).replaced === 0, { withinMs: 20_000, what: 'no replaced parts' });
    expect(synced).toBeGreaterThan(0);
    const [row] = await clickhouse.rows<{ rows: number }>({
      name: 'test',
      sql: 'SELECT toUInt32(count()) AS rows FROM t',
      timeoutMs: 9000,
    });
    expect([row?.rows, await parts()]).toEqual([50, { active: 1, replaced: 0 }]);
  });

  it('a replaced part stays while a merge of its table runs, which goes on', async () => {
    await run(`ALTER TABLE t UPDATE v = ${SLOW} WHERE 1 SETTINGS mutations_sync = 0`);
    const running = async (): Promise<number> => {
      const [row] = await clickhouse.rows<{ n: number }>({
        name: 'test',
        sql: "SELECT toUInt32(count()) AS n FROM system.merges WHERE database = currentDatabase() AND table = 't'",
        timeoutMs: 9000,
      });
      return row?.n ?? 0;
    };
    await eventually(async () => (await running()) > 0, { what: 'a mutation that runs' });
    start(-14);
    await looked();
    expect([await running(), synced]).toEqual([1, 0]);
    await run("KILL MUTATION WHERE database = currentDatabase() AND table = 't' SYNC");
    await eventually(async () => (await parts()).replaced === 0, { withinMs: 20_000, what: 'no replaced parts' });
  });

  it('a young replaced part stays', async () => {
    start(1000);
    await looked();
    expect([await parts(), synced]).toEqual([after, 0]);
  });

  it('a replaced part stays where another worker leads', async () => {
    isLeader = false;
    start(-14);
    await looked();
    expect([await parts(), synced]).toEqual([after, 0]);
  });
});
