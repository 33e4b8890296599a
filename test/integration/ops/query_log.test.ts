// The engine's log of statements: what it holds, and who may read it.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runStatement, startTestEngine, type TestEngine } from '../../support/clickhouse.ts';

let engine: TestEngine;

beforeAll(async () => {
  engine = await startTestEngine({ queryLog: true });
});

afterAll(() => engine.remove());

const STATEMENTS = "SELECT groupArray(DISTINCT log_comment) FROM system.query_log WHERE log_comment != ''";
const PARTS = "SELECT count() FROM system.part_log WHERE table = 'logged'";

const app = (statement: string) => runStatement(engine.url, statement, '');

it('the log has the names of statements and the new parts, also after kill -9 of the engine', async () => {
  for (let round = 0; round < 2; round += 1) {
    await app('CREATE DATABASE IF NOT EXISTS millrace');
    await app('CREATE OR REPLACE TABLE millrace.logged (n UInt8) ENGINE = MergeTree ORDER BY n');
    await app(`INSERT INTO millrace.logged SETTINGS log_comment = 'round_${round}' VALUES (1)`);
    await app('SYSTEM FLUSH LOGS');
    // The log of an engine ends with its process.
    expect((await app(STATEMENTS)).trim()).toBe(`['round_${round}']`);
    expect(Number(await app(PARTS))).toBeGreaterThan(0);
    await engine.kill();
    await engine.start();
  }
});

it('analysts cannot read the log', async () => {
  await app('SYSTEM FLUSH LOGS');
  for (const table of ['query_log', 'part_log'])
    await expect(runStatement(engine.analystUrl, `SELECT count() FROM system.${table}`, '')).rejects.toThrow(
      'Not enough privileges',
    );
});
