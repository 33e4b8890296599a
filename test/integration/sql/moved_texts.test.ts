// A move that ended half-way is repeated: texts that are in span_texts already are left out, also
// when many others landed after the oldest of the moved ones.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Fences } from '../../../pipeline/landing/fences.ts';
import { ClickHouseTextStore } from '../../../pipeline/landing/text_store.ts';
import { createClickHouse, type ClickHouse } from '../../../sql/client/client.ts';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';

/** More positions than a statement may hold in a set. */
const LATER = 70_000;

let database: TestDatabase;
let client: ClickHouse;
let texts: ClickHouseTextStore;

beforeAll(async () => {
  database = await createTestDatabase();
  client = createClickHouse({ url: database.url });
  texts = new ClickHouseTextStore(client, new Fences(client, 'worker_a'));
}, 60_000);
afterAll(async () => {
  await client.close();
  await database.drop();
});

test('a repeated move copies what is missing, in memory that depends on the moved parts alone', async () => {
  await database.run(
    `INSERT INTO span_texts (org_id, log_seq, log_index) SELECT 'org_a', 10 + intDiv(number, 100), number % 100 FROM numbers(${LATER})`,
  );
  for (const [seq, prompt] of [
    [7, 'seven'],
    [8, 'eight'],
    [9, 'nine'],
  ] as const)
    await database.run(
      `INSERT INTO span_texts_recent (org_id, span_id, prompt, log_seq) VALUES ('org_a', '${prompt}', '${prompt}', ${seq})`,
    );
  await database.run("INSERT INTO span_texts (org_id, span_id, prompt, log_seq) VALUES ('org_a', 'eight', 'eight', 8)");
  const epoch = await texts.takeMoverFence('worker_a');
  const parts = await texts.recentParts();
  expect(parts.map(({ rows }) => rows)).toEqual([1, 1, 1]);
  expect(await texts.move(parts, epoch, 'move-1')).toBe(true);
  expect(await texts.move(parts, epoch, 'move-2')).toBe(true);
  expect(
    await database.run("SELECT prompt, count() FROM span_texts WHERE prompt != '' GROUP BY prompt ORDER BY prompt"),
  ).toBe('eight\t1\nnine\t1\nseven\t1\n');
}, 60_000);

test('moved and merged parts are left out of a read of another time by their smallest and largest time', async () => {
  await database.run('TRUNCATE TABLE span_texts');
  await database.run(
    "INSERT INTO span_texts_recent (org_id, started_at, log_seq) VALUES ('org_b', '2026-01-05 10:00:00', 80000)",
  );
  const epoch = await texts.takeMoverFence('worker_a');
  expect(await texts.move(await texts.recentParts(), epoch, 'move-3')).toBe(true);
  const read = (hour: number): string =>
    `SELECT count() FROM span_texts WHERE org_id = 'org_b' AND started_at >= '2026-01-05 ${hour}:00:00'`;
  const leftOut = async (hour: number): Promise<boolean> =>
    /Statistics[^]*?Parts: 0\/1/.test(await database.run(`EXPLAIN indexes = 1 ${read(hour)}`));
  const looks = async () => [await database.run(read(10)), await leftOut(10), await leftOut(11)];
  expect(await looks()).toEqual(['1\n', false, true]);
  await database.run('OPTIMIZE TABLE span_texts FINAL');
  expect(await looks()).toEqual(['1\n', false, true]);
}, 60_000);
