// ClickHouse for tests: a new database on the engine that the run shares, or a separate engine for
// a test that stops it.
import { randomBytes } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { request } from 'node:http';
import path from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { inject } from 'vitest';
import type { ClusterConfig } from '../../ops/launch/clickhouse/cluster.ts';
import { type ClickHouseServer, startClickHouse } from '../../ops/launch/clickhouse/server.ts';
import { DATABASE_PLACE } from './template.ts';
import { removeDir } from './temp.ts';

export interface TestDatabase {
  /** http://app:password@host:port/test_…: the format of SERVICE_CLICKHOUSE_URL. */
  url: string;
  database: string;
  /** Runs a statement as app in this database and returns the text of the answer. */
  run(statement: string): Promise<string>;
  drop(): Promise<void>;
}

/**
 * Creates a database on the shared engine, with all tables and views and no rows. The caller's
 * afterAll must call drop().
 * @param empty true: without tables too, for tests of the migration
 */
export async function createTestDatabase({ empty = false } = {}): Promise<TestDatabase> {
  const database = `test_${randomBytes(6).toString('hex')}`;
  const url = new URL(inject('clickhouse').url);
  url.pathname = `/${database}`;
  const run = (statement: string): Promise<string> => runStatement(url.href, statement);
  const { url: engineUrl, template } = inject('clickhouse');
  await runStatement(engineUrl, `CREATE DATABASE ${database}`, '');
  for (const statement of empty ? [] : template) await run(statement.replaceAll(DATABASE_PLACE, database));
  return {
    url: url.href,
    database,
    run,
    async drop() {
      await runStatement(url.href, `DROP DATABASE IF EXISTS ${database} SYNC`, '');
    },
  };
}

/**
 * Runs one statement over HTTP as the URL's user.
 * @param database default: the URL's
 * @throws Error with the server's message
 */
export function runStatement(address: string, statement: string, database?: string): Promise<string> {
  const { username, password, origin, pathname } = new URL(address);
  const named = database ?? pathname.slice(1);
  const options = {
    method: 'POST',
    auth: `${decodeURIComponent(username)}:${decodeURIComponent(password)}`,
    // A keep-alive connection would delay a stop of the engine by seconds.
    agent: false,
    headers: { connection: 'close' },
  };
  return new Promise((resolve, reject) => {
    const req = request(`${origin}/${named === '' ? '' : `?database=${encodeURIComponent(named)}`}`, options, (res) => {
      void readText(res).then((text) => {
        if (res.statusCode === 200) resolve(text);
        else reject(new Error(text));
      }, reject);
    });
    req.on('error', reject);
    req.end(statement);
  });
}

export interface TestEngine {
  /** Unchanged by a restart. Names the database `millrace`, which does not exist at first. */
  url: string;
  analystUrl: string;
  readonly server: ClickHouseServer;
  /** Sends SIGKILL. */
  kill(): Promise<void>;
  stop(): Promise<void>;
  /** Starts the engine again on the same port and folder. */
  start(): Promise<void>;
  /** Stops the engine and removes its folder. Idempotent. */
  remove(): Promise<void>;
}

export interface TestEngineOptions {
  memoryMaxBytes?: number;
  nice?: number;
  queryLog?: boolean;
  /** Pattern of further databases that app may use; none if absent. */
  moreDatabases?: string;
  /** Makes the engine a shard, see startShardEngines. */
  cluster?: ClusterConfig;
}

/** Starts a separate engine. The caller's afterAll must call remove(). */
export async function startTestEngine(options: TestEngineOptions = {}): Promise<TestEngine> {
  const folder = mkdtempSync(path.join(inject('folder'), 'clickhouse-'));
  const boot = (httpPort: number): Promise<ClickHouseServer> =>
    startClickHouse({
      dataDir: path.join(folder, 'clickhouse'),
      httpPort,
      appPassword: 'test-app-password',
      analystPassword: 'test-analyst-password',
      database: 'millrace',
      logFile: path.join(folder, 'logs', 'clickhouse.log'),
      memoryMaxBytes: options.memoryMaxBytes ?? 1_000_000_000,
      nice: options.nice ?? 0,
      queryLog: options.queryLog ?? false,
      ...(options.moreDatabases === undefined ? {} : { moreDatabases: options.moreDatabases }),
      cluster: options.cluster,
    });
  let server = await boot(0);
  const { url, analystUrl, httpPort } = server;
  return {
    url,
    analystUrl,
    get server() {
      return server;
    },
    async kill() {
      server.child.kill('SIGKILL');
      await server.exited;
    },
    stop: () => server.stop(),
    async start() {
      server = await boot(httpPort);
    },
    async remove() {
      // SIGKILL, because an orderly stop would write data that is removed anyway.
      server.child.kill('SIGKILL');
      await server.exited;
      removeDir(folder);
    },
  };
}
