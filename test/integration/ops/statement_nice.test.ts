// CPU priority inside the embedded engine: statements of a client with a nice value run below those of
// others where the engine may set priorities, and run as before where it may not.
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { statementNice } from '../../../ops/platform/clickhouse/statement_nice.ts';
import { type ClickHouse, createClickHouse, type Priority } from '../../../sql/client/client.ts';
import { startTestEngine, type TestEngine } from '../../support/clickhouse.ts';
import { eventually } from '../../support/wait.ts';

const NICE = 3;
const CAP_SYS_NICE = 1n << 23n;
/** Index of the nice value among the fields of /proc/<pid>/stat after the name. */
const NICE_FIELD = 16;

let engine: TestEngine;
let pipeline: ClickHouse;
let api: ClickHouse;

beforeAll(async () => {
  engine = await startTestEngine({ nice: NICE });
  pipeline = createClickHouse({ url: engine.url, statementNice: statementNice(NICE) });
  api = createClickHouse({ url: engine.url });
  await api.createDatabase();
  await run(api, 'create', 'CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n');
}, 60_000);
afterAll(async () => {
  await pipeline.close();
  await api.close();
  await engine.remove();
});

const run = (client: ClickHouse, name: string, sql: string, priority?: Priority) =>
  client.execute({ name, sql, timeoutMs: 30_000, ...(priority && { priority }) });

/** Inserts for about two seconds. */
const insert = (client: ClickHouse, name: string, priority?: Priority) =>
  run(
    client,
    name,
    'INSERT INTO t SELECT number + sleepEachRow(0.02) FROM numbers(100) SETTINGS max_block_size = 1, min_insert_block_size_rows = 1000',
    priority,
  );

/** Returns the setting and the threads of a running statement; null while it does not run. */
async function statement(name: string): Promise<{ nice: string; threads: string[] } | null> {
  const [row] = await api.rows<{ nice: string; threads: string[] }>({
    name: 'processes',
    sql: "SELECT Settings['os_threads_nice_value_query'] AS nice, thread_ids AS threads FROM system.processes WHERE Settings['log_comment'] = {name:String}",
    params: { name },
    timeoutMs: 5000,
  });
  return row ?? null;
}

/** Returns the nice values of threads of the engine. */
function nicesOf(threads: readonly string[]): number[] {
  return threads.flatMap((thread) => {
    try {
      const stat = readFileSync(`/proc/${engine.server.pid}/task/${thread}/stat`, 'utf8');
      return [Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[NICE_FIELD])];
    } catch {
      // The thread has ended.
      return [];
    }
  });
}

/** Returns true if the engine may raise the priority of its threads. */
function mayRaise(): boolean {
  const status = readFileSync(`/proc/${engine.server.pid}/status`, 'utf8');
  const [, effective = '0'] = /^CapEff:\s*([0-9a-f]+)$/m.exec(status) ?? [];
  return (BigInt(`0x${effective}`) & CAP_SYS_NICE) !== 0n;
}

it.each([
  [0, { ahead: 0, usual: 0, behind: 0 }],
  [1, { ahead: 1, usual: 2, behind: 3 }],
  [5, { ahead: 5, usual: 10, behind: 15 }],
  [9, { ahead: 9, usual: 18, behind: 19 }],
  [19, { ahead: 19, usual: 19, behind: 19 }],
])('a nice value of %i gives statements and merges %o', (landing, expected) => {
  expect(statementNice(landing)).toEqual(expected);
});

it('statements of the pipeline have the setting, those of the API do not', async () => {
  const inserts = [
    insert(pipeline, 'of_pipeline'),
    insert(pipeline, 'goes_ahead', 'ahead'),
    insert(pipeline, 'stands_behind', 'behind'),
    insert(api, 'of_api', 'ahead'),
  ];
  const names = ['of_pipeline', 'goes_ahead', 'stands_behind', 'of_api'];
  const seen: Record<string, string> = {};
  await eventually(async () => {
    for (const name of names) seen[name] = (await statement(name))?.nice ?? seen[name] ?? 'none';
    return !Object.values(seen).includes('none');
  });
  await Promise.all(inserts);
  expect(seen).toEqual({
    of_pipeline: String(2 * NICE),
    goes_ahead: String(NICE),
    stands_behind: String(3 * NICE),
    of_api: '',
  });
  // A read has bounds of its own beside the setting.
  const rows = await pipeline.rows({ name: 'read', sql: 'SELECT count() AS rows FROM t', timeoutMs: 5000 });
  expect(rows).toEqual([{ rows: '400' }]);
});

it.runIf(process.platform === 'linux')(
  'threads run a statement of the pipeline at a lower priority, where the engine may raise it again',
  async () => {
    const inserting = insert(pipeline, 'watched');
    const nices = new Set<number>();
    const lowest = mayRaise() ? 2 * NICE : NICE;
    await eventually(async () => {
      const running = await statement('watched');
      for (const nice of nicesOf(running?.threads ?? [])) nices.add(nice);
      return nices.has(lowest);
    });
    await inserting;
    expect(Math.max(...nices)).toBe(lowest);
  },
);

it('the engine sets the priority of merges and mutations by its configuration', async () => {
  const [row] = await api.rows({
    name: 'server_settings',
    sql: "SELECT value FROM system.server_settings WHERE name = 'os_threads_nice_value_merge_mutate'",
    timeoutMs: 5000,
  });
  expect(row).toEqual({ value: String(2 * NICE) });
  await run(api, 'merge', 'OPTIMIZE TABLE t FINAL');
});
