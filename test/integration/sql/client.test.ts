import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  classifyStoreError,
  createClickHouse,
  type ClickHouse,
  isTooLarge,
  StoreUnavailable,
} from '../../../sql/client/client.ts';
import { defineQuery } from '../../../sql/client/query.ts';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { eventually } from '../../support/wait.ts';

let database: TestDatabase;
let client: ClickHouse;
const observed: string[] = [];
const FOREVER =
  'SELECT sleepEachRow(1) FROM numbers(100) SETTINGS max_block_size = 1, function_sleep_max_microseconds_per_block = 1000000000';

beforeAll(async () => {
  database = await createTestDatabase({ empty: true });
  client = createClickHouse({ url: database.url, observeQuery: (name) => observed.push(name) });
  await database.run('CREATE TABLE t (n UInt32, s String) ENGINE = MergeTree ORDER BY n');
});
afterAll(async () => {
  await client.close();
  await database.drop();
});

const failure = (run: Promise<unknown>): Promise<unknown> =>
  run.then(
    () => null,
    (error: unknown) => error,
  );
const running = async (name: string): Promise<number> =>
  Number(await database.run(`SELECT count() FROM system.processes WHERE Settings['log_comment'] = '${name}'`));

describe('reads', () => {
  it('reads keep every digit and every character', async () => {
    const text = 'a\'b\\n\n\t"ü東\0';
    const rows = await client.rows({
      name: 'types',
      sql: "SELECT {key:UInt64} AS key, {text:String} AS text, {texts:Array(String)} AS texts, toDateTime64('2026-01-02 03:04:05.678', 3, 'UTC') AS at, toDecimal64('0.000000000001', 12) AS cost",
      params: { key: '18446744073709551615', text, texts: [text, ''] },
      timeoutMs: 5000,
    });
    expect(rows).toEqual([
      { key: '18446744073709551615', text, texts: [text, ''], at: '2026-01-02T03:04:05.678Z', cost: 1e-12 },
    ]);
  });

  it('reads accept long lists of parameters', async () => {
    const keys = Array.from({ length: 10_000 }, (_, n) => BigInt(n));
    expect(
      await client.rows({
        name: 'long',
        sql: 'SELECT length({keys:Array(UInt64)}) AS n',
        params: { keys },
        timeoutMs: 5000,
      }),
    ).toEqual([{ n: '10000' }]);
  });

  it('reads hold a large set of keys once', async () => {
    await database.run(
      'CREATE TABLE keyed (k UInt64, INDEX ix k TYPE bloom_filter(0.01) GRANULARITY 1) ENGINE = MergeTree ORDER BY k',
    );
    await database.run('INSERT INTO keyed SELECT 2 * number FROM numbers(20000)');
    const rows = await client.rows({
      name: 'large_set',
      // The set needs 170 MB, or 186 MB when the engine also keeps it for the index.
      sql: 'SELECT count() AS found FROM keyed WHERE k IN (SELECT number FROM numbers(3000000)) SETTINGS max_memory_usage = 178000000',
      timeoutMs: 20_000,
    });
    expect(rows).toEqual([{ found: '20000' }]);
  });

  it('reads change nothing', async () => {
    expect(
      await failure(client.rows({ name: 'write', sql: 'INSERT INTO t SELECT 1, 1', timeoutMs: 5000 })),
    ).toMatchObject({ code: '164' });
  });

  it('reads end in time, here and in the store', async () => {
    expect(await failure(client.rows({ name: 'slow_read', sql: FOREVER, timeoutMs: 300 }))).toBeInstanceOf(
      StoreUnavailable,
    );
    await eventually(async () => (await running('slow_read')) === 0);
  });

  it('reads end when the caller disconnects', async () => {
    const gone = new AbortController();
    const read = failure(client.rows({ name: 'left_read', sql: FOREVER, timeoutMs: 30_000, signal: gone.signal }));
    await eventually(async () => (await running('left_read')) === 1);
    gone.abort();
    expect(await read).not.toBeInstanceOf(StoreUnavailable);
    await eventually(async () => (await running('left_read')) === 0);
  });

  it('reads end when a stream is left early', async () => {
    for await (const rows of client.stream({
      name: 'left_stream',
      sql: "SELECT number, repeat('x', 1000) AS s, sleepEachRow(0.001) AS z FROM numbers(1000000) SETTINGS max_block_size = 100",
      timeoutMs: 30_000,
    })) {
      expect(rows.length).toBeGreaterThan(0);
      break;
    }
    await eventually(async () => (await running('left_stream')) === 0);
  });

  it('reads throw in the middle when the store fails in the middle', async () => {
    const read = async () => {
      let rows = 0;
      for await (const block of client.stream({
        name: 'broken',
        sql: "SELECT number, throwIf(number = 500000, 'enough') AS z, repeat('x', 100) AS s FROM numbers(1000000)",
        timeoutMs: 30_000,
      }))
        rows += block.length;
      return rows;
    };
    // When the store's error message is split across two chunks, the client only detects that there
    // was one.
    expect(await failure(read())).toMatchObject({
      message: expect.stringMatching(/enough|error in the stream/) as string,
    });
  });

  it('reads report an answer larger than the caller accepts', async () => {
    const error = await failure(
      client.rows({
        name: 'large',
        sql: "SELECT repeat('x', 1000 + number % 2) AS s FROM numbers(100000)",
        timeoutMs: 5000,
        bytesMax: 100_000,
      }),
    );
    expect(isTooLarge(error)).toBe(true);
    expect(isTooLarge(new Error('other'))).toBe(false);
  });

  it('reads report their time by name, also when they fail', () => {
    for (const name of ['types', 'slow_read', 'left_stream', 'broken']) expect(observed).toContain(name);
  });
});

describe('inserts', () => {
  const insert = (body: string) =>
    client.execute({
      name: 'insert',
      sql: "INSERT INTO t SELECT n, s FROM input('n UInt32, s String') WHERE n < 100 FORMAT JSONCompactEachRow",
      body,
      timeoutMs: 5000,
    });

  it('inserts report how many rows they wrote', async () => {
    expect(await insert('[1,"a"]\n[2,"b"]\n[100,"not taken"]')).toEqual({ written_rows: 2 });
  });

  it('inserts accept half a surrogate pair', async () => {
    expect(await insert(JSON.stringify([3, 'x\ud800y']))).toEqual({ written_rows: 1 });
  });

  it('inserts are rejected for an invalid row, and write nothing of its neighbours', async () => {
    const error = await failure(insert('[4,"good"]\n[-5,"bad"]\n["x","bad"]'));
    expect(classifyStoreError(error)).toBe('refused');
    expect(await database.run('SELECT count() FROM t WHERE n IN (4, 5)')).toBe('0\n');
  });

  it('inserts are retried after any other failure', async () => {
    const error = await failure(
      client.execute({ name: 'insert', sql: 'INSERT INTO missing FORMAT JSONEachRow', body: '{}', timeoutMs: 5000 }),
    );
    expect(classifyStoreError(error)).toBe('unavailable');
  });
});

describe('a store that is away', () => {
  it('a store that is away is recognised, whether nobody listens or nobody answers', async () => {
    const silent = createServer((socket) => socket.resume());
    silent.listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    const waiting = createClickHouse({ url: `http://u:p@127.0.0.1:${port}/d` });
    expect(await failure(waiting.rows({ name: 'silent', sql: 'SELECT 1', timeoutMs: 200 }))).toBeInstanceOf(
      StoreUnavailable,
    );
    await waiting.close();
    silent.close();
    await once(silent, 'close');
    const refused = createClickHouse({ url: `http://u:p@127.0.0.1:${port}/d` });
    const error = await failure(refused.rows({ name: 'refused', sql: 'SELECT 1', timeoutMs: 2000 }));
    expect(error).toBeInstanceOf(StoreUnavailable);
    expect(classifyStoreError(error)).toBe('unavailable');
    expect(await refused.ping()).toBe(false);
    await refused.close();
  });
});

describe('a defined query', () => {
  const readLookup = defineQuery({
    name: 'probe',
    file: 'traces/lookup.sql',
    params: z.object({ trace_id: z.string() }),
    row: z.object({ org_id: z.string() }),
  });

  it('a defined query rejects parameters and rows of another shape', async () => {
    await expect(readLookup(client, { trace_id: 1 } as unknown as { trace_id: string })).rejects.toBeInstanceOf(
      z.ZodError,
    );
    await database.run(
      'CREATE TABLE trace_lookup (trace_key UInt64, org_id UInt8, first_at DateTime64(3), last_at DateTime64(3)) ENGINE = MergeTree ORDER BY trace_key',
    );
    await database.run("INSERT INTO trace_lookup VALUES (sipHash64('a'), 7, 0, 0)");
    await expect(readLookup(client, { trace_id: 'a' })).rejects.toBeInstanceOf(z.ZodError);
    expect(await readLookup(client, { trace_id: 'b' })).toEqual([]);
  });
});
