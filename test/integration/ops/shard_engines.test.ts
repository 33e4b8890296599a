// Embedded engines that form a cluster: reads over all shards, access to the native port, and
// engines that stop, die and come back.
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../../../ops/launch/process/ports.ts';
import { runStatement, startTestEngine } from '../../support/clickhouse.ts';
import {
  createShardDatabase,
  type ShardDatabase,
  type ShardEngines,
  startShardEngines,
  TEST_CLUSTER,
} from '../../support/shard_engines.ts';

let shards: ShardEngines;
let database: ShardDatabase;

beforeAll(async () => {
  shards = await startShardEngines(2);
  database = await createShardDatabase(shards);
  for (const [index, url] of database.urls.entries())
    await runStatement(
      url,
      `INSERT INTO trace_lookup SELECT number, 'org_${index}', now64(3), now64(3) FROM numbers(${index + 1})`,
    );
});

afterAll(() => shards.remove());

const COUNT = 'SELECT count() FROM trace_lookup FORMAT TSV';
const countAll = (shard: number): Promise<string> => runStatement(database.allUrls[shard] ?? '', COUNT);
const portOf = (shard: number): number => shards.clusters[shard]?.tcpPort ?? 0;

/** Returns a text of the native protocol. Its length must be below 128. */
const text = (value: string): Buffer => Buffer.concat([Buffer.from([value.length]), Buffer.from(value)]);

/** Returns the first packet of a client of the native protocol, with a version of the year 2018. */
const hello = (user: string, password: string): Buffer =>
  Buffer.concat([
    Buffer.from([0]),
    text('test'),
    Buffer.from([18, 1, 0xa2, 0xa8, 0x03]),
    ...['default', user, password].map(text),
  ]);

async function opened(port: number, bytes: Buffer): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject).write(bytes, () => {
      resolve();
    });
  });
  return socket.on('error', () => undefined);
}

/** Returns the first answer of the native port: byte 0 is a hello, byte 2 an exception. */
async function answerTo(port: number, bytes: Buffer): Promise<Buffer> {
  const socket = await opened(port, bytes);
  const answer = await new Promise<Buffer>((resolve) => socket.once('data', resolve));
  socket.destroy();
  return answer;
}

describe('engines that form a cluster', () => {
  it('every engine reads the rows of all shards, and its own database only its own', async () => {
    expect(await Promise.all([countAll(0), countAll(1)])).toEqual(['3\n', '3\n']);
    expect(await Promise.all(database.urls.map((url) => runStatement(url, COUNT)))).toEqual(['1\n', '2\n']);
  });

  it('a read runs as the same user on every shard', async () => {
    const users = await runStatement(
      database.allUrls[0] ?? '',
      'SELECT DISTINCT _shard_num, currentUser() FROM trace_lookup ORDER BY 1 FORMAT TSV',
    );
    expect(users).toBe('1\tapp\n2\tapp\n');
  });

  it('app may read other shards through tables of the cluster only, not by address', async () => {
    for (const source of [`remote('127.0.0.1:${portOf(1)}', system.one)`, `cluster('${TEST_CLUSTER}', system.one)`])
      await expect(runStatement(database.urls[0] ?? '', `SELECT * FROM ${source}`)).rejects.toThrow('READ ON REMOTE');
  });

  it('an engine with another secret is rejected', async () => {
    const [own] = shards.clusters;
    if (own === undefined) throw new Error('no shard');
    const stranger = await startTestEngine({
      moreDatabases: 'test_*',
      cluster: { ...own, tcpPort: await freePort(), secret: 'another secret', shards: own.shards.slice(1) },
    });
    try {
      await runStatement(stranger.url, `CREATE DATABASE ${database.database}`, '');
      await runStatement(
        stranger.url,
        `CREATE TABLE taken (org_id String) ENGINE = Distributed(${TEST_CLUSTER}, ${database.database}, trace_lookup)`,
        database.database,
      );
      await expect(runStatement(stranger.url, 'SELECT * FROM taken', database.database)).rejects.toThrow(
        /AUTHENTICATION_FAILED|ALL_CONNECTION_TRIES_FAILED/,
      );
    } finally {
      await stranger.remove();
    }
    expect(await countAll(0)).toBe('3\n');
  });
});

describe('the native port of a shard', () => {
  it.each([
    ['default', '', 'overflown session count'],
    ['', '', 'no user'],
    ['app', '', 'Authentication failed'],
    ['org_reader', '', 'Authentication failed'],
    ['org_analyst', '', 'Authentication failed'],
  ])('the engine rejects the user %j with the password %j', async (user, password, reason) => {
    const answer = await answerTo(portOf(1), hello(user, password));
    expect([answer[0], answer.toString('latin1').includes(reason)]).toEqual([2, true]);
  });

  it('the engine admits app with its password', async () => {
    expect((await answerTo(portOf(1), hello('app', 'test-app-password')))[0]).toBe(0);
  });

  it('the engine survives broken packets and connections that are reset', async () => {
    for (const bytes of ['GET / HTTP/1.1\r\n\r\n', '\x07\x07\x07', '\x00\xff\xff\xff\xff\xff'])
      for (const close of ['resetAndDestroy', 'destroy'] as const)
        (await opened(portOf(1), Buffer.from(bytes, 'latin1')))[close]();
    for (let round = 0; round < 20; round++)
      (await opened(portOf(1), hello('app', 'test-app-password'))).resetAndDestroy();
    expect(await countAll(1)).toBe('3\n');
  });
});

describe('a shard that is away', () => {
  it('makes reads of all shards fail, not those of the other shard, until it is back on its ports', async () => {
    const [, second] = shards.engines;
    if (second === undefined) throw new Error('no shard');
    const { httpPort } = second.server;
    for (const leave of [() => second.kill(), () => second.stop()]) {
      await leave();
      await expect(countAll(0)).rejects.toThrow(/ALL_CONNECTION_TRIES_FAILED|NETWORK_ERROR|ATTEMPT_TO_READ_AFTER_EOF/);
      expect(await runStatement(database.urls[0] ?? '', COUNT)).toBe('1\n');
      await second.start();
      expect(second.server.httpPort).toBe(httpPort);
      expect(await Promise.all([countAll(0), countAll(1)])).toEqual(['3\n', '3\n']);
    }
    await second.stop();
    expect(await second.server.exited).toMatchObject({ code: 0 });
    await second.start();
  });
});
