// The two engines as the service runs them: they start, survive kill -9, keep their port and stop.
// Also the rights of each ClickHouse user.
import { StoreCompression } from '@nats-io/jetstream';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { connectNats, trackConnected } from '../../../ops/platform/nats/connect.ts';
import { openLog } from '../../../ops/platform/nats/open_log.ts';
import { ANALYST_VIEWS } from '../../../sql/analysts/grants.ts';
import {
  type TestDatabase,
  type TestEngine,
  createTestDatabase,
  runStatement,
  startTestEngine,
} from '../../support/clickhouse.ts';
import { type TestNats, startTestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';

describe('nats-server', () => {
  let nats: TestNats;
  beforeAll(async () => {
    nats = await startTestNats({ sync: 'always' });
  });
  afterAll(() => nats.remove());

  it('nats-server keeps an acknowledged message through kill -9, on the same port, and the client reconnects by itself', async () => {
    const nc = await connectNats({ url: nats.url, name: 'test', waitMs: 5000 });
    const link = trackConnected(nc);
    const { js, jsm } = await openLog(nc, { replicas: 1, logBytesMax: 64 * 1024 ** 2 });
    const { seq } = await js.publish('ingest.0', 'kept');
    await nats.kill();
    await eventually(() => !link.connected);
    await nats.start();
    await eventually(() => link.connected);
    expect((await jsm.streams.getMessage('INGEST', { seq }))?.string()).toBe('kept');
    await nc.close();
  });

  it('a start changes a compressed ingest log to an uncompressed one, and both kinds of blocks survive kill -9', async () => {
    const limits = { replicas: 1, logBytesMax: 64 * 1024 ** 2 };
    const nc = await connectNats({ url: nats.url, name: 'test', waitMs: 5000 });
    const link = trackConnected(nc);
    const { js, jsm } = await openLog(nc, limits);
    await jsm.streams.purge('INGEST');
    await jsm.streams.update('INGEST', { compression: StoreCompression.S2 });
    const texts: string[] = [];
    // Several blocks: a block of a stream of this size has at most 8 MiB.
    const fill = async (): Promise<void> => {
      for (let index = 0; index < 24; index += 1) {
        texts.push(`${texts.length} `.repeat(256 * 1024));
        await js.publish('ingest.0', texts.at(-1) ?? '');
      }
    };
    await fill();
    await openLog(nc, limits);
    expect((await jsm.streams.info('INGEST')).config.compression).toBe(StoreCompression.None);
    await fill();
    await nats.kill();
    await eventually(() => !link.connected);
    await nats.start();
    await eventually(() => link.connected);
    const { state } = await jsm.streams.info('INGEST');
    expect(state.messages).toBe(texts.length);
    for (const [index, text] of texts.entries())
      expect((await jsm.streams.getMessage('INGEST', { seq: state.first_seq + index }))?.string()).toBe(text);
    await nc.close();
  });

  it('two processes may create the same bucket, also when both saw that it was missing', async () => {
    const limits = { replicas: 1, logBytesMax: 64 * 1024 ** 2 };
    await nats.stop();
    await nats.start();
    const [slow, fast] = await Promise.all([
      connectNats({ url: nats.url, name: 'slow', waitMs: 5000 }),
      connectNats({ url: nats.url, name: 'fast', waitMs: 5000 }),
    ]);
    const request = slow.request.bind(slow);
    let seen = false;
    slow.request = async (subject, ...rest) => {
      const answer = await request(subject, ...rest);
      // This stream is stored in memory, so the restart deleted it.
      if (subject.endsWith('STREAM.INFO.KV_ingest_claims') && !seen) {
        seen = true;
        await openLog(fast, limits);
      }
      return answer;
    };
    await openLog(slow, limits);
    expect(seen).toBe(true);
    await Promise.all([slow.close(), fast.close()]);
  });

  it('nats-server rejects a wrong token with one line that does not show it', async () => {
    const wrong = nats.url.replace('test-nats-token', 'wrong-secret');
    await expect(connectNats({ url: wrong, name: 'test', waitMs: 5000 })).rejects.toThrow(
      /^NATS at 127\.0\.0\.1:\d+: Authorization Violation$/i,
    );
  });
});

describe('ClickHouse engine', () => {
  let engine: TestEngine;
  beforeAll(async () => {
    engine = await startTestEngine();
  });
  afterAll(() => engine.remove());

  it('the ClickHouse engine keeps an acknowledged row through kill -9, on the same port', async () => {
    await runStatement(engine.url, 'CREATE DATABASE millrace', '');
    await runStatement(
      engine.url,
      'CREATE TABLE kept (n Int32) ENGINE = MergeTree ORDER BY n SETTINGS fsync_after_insert = 1',
    );
    await runStatement(engine.url, 'INSERT INTO kept VALUES (7)');
    await engine.kill();
    await engine.start();
    expect(await runStatement(engine.url, 'SELECT n FROM kept')).toBe('7\n');
    await engine.stop();
    expect(await engine.server.exited).toEqual({ code: 0, signal: null });
    await engine.start();
  });

  it('the ClickHouse engine grows no system log table while it is idle', async () => {
    const tables = await runStatement(
      engine.url,
      "SELECT name FROM system.tables WHERE database = 'system' AND match(name, '_log(_[0-9]+)?$')",
      '',
    );
    expect(tables).toBe('');
  });
});

describe('users of ClickHouse', () => {
  let db: TestDatabase;
  const asAnalyst = (statement: string): Promise<string> =>
    runStatement(inject('clickhouse').analystUrl, statement, '');
  beforeAll(async () => {
    db = await createTestDatabase();
    await db.run('CREATE TABLE secret (org_id String) ENGINE = MergeTree ORDER BY org_id');
  });
  afterAll(() => db.drop());

  it.each([
    ['a table of the service', () => `SELECT * FROM ${db.database}.secret`],
    ['a file as a table', () => "SELECT * FROM file('/etc/hostname', LineAsString)"],
    ['another server', () => "SELECT * FROM url('http://127.0.0.1:1/', LineAsString)"],
    ['keys of an index', () => `SELECT * FROM mergeTreeIndex('${db.database}', 'secret')`],
    ['what others run', () => 'SELECT * FROM system.processes'],
    ['a temporary table', () => 'CREATE TEMPORARY TABLE t (a Int8)'],
  ])('the user analyst is denied %s', async (_what, statement) => {
    await expect(asAnalyst(statement())).rejects.toThrow(/ACCESS_DENIED|getcwd/);
  });

  it('the user analyst cannot lift its own bounds', async () => {
    await expect(asAnalyst('SELECT 1 SETTINGS max_execution_time = 0')).rejects.toThrow(/READONLY/);
    await expect(asAnalyst('SELECT 1 SETTINGS readonly = 0')).rejects.toThrow(/READONLY/);
  });

  it('the user analyst may read exactly the five views', async () => {
    const granted = await asAnalyst('SHOW GRANTS');
    const views = [...granted.matchAll(/GRANT SELECT ON millrace\.(\w+) TO/g)].map((match) => match[1]);
    expect(views.toSorted()).toEqual([...ANALYST_VIEWS].toSorted());
    expect(granted.trim().split('\n')).toHaveLength(ANALYST_VIEWS.length);
  });

  it('the user app cannot reach outside the store', async () => {
    await expect(db.run("CREATE TABLE f (a String) ENGINE = File('TSV', '/etc/passwd')")).rejects.toThrow(
      /ACCESS_DENIED/,
    );
    await expect(db.run("SELECT * FROM file('/etc/passwd', LineAsString)")).rejects.toThrow(/ACCESS_DENIED|getcwd/);
    await expect(db.run("SELECT * FROM url('http://127.0.0.1:1/', LineAsString)")).rejects.toThrow(/ACCESS_DENIED/);
  });
});
