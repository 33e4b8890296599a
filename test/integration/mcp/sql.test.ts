// The tool run_sql on an engine that confines analysts, with rows of two organizations.
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeKey } from '../a_tenant.ts';
import { api } from '../sql/an_analyst.ts';
import { connect, type ToolClient } from './a_client.ts';

let client: ToolClient;
let stranger: ToolClient;
beforeAll(async () => {
  client = await connect(api, await makeKey(api, 'org_a', ['traces:read', 'costs:read']));
  stranger = await connect(api, await makeKey(api, 'org_b', ['*']));
});
afterAll(async () => {
  await client.close();
  await stranger.close();
});

const rowsOf = async (one: ToolClient, sql: string): Promise<unknown[]> => {
  const { text, isError, structured } = await one.tool('run_sql', { sql });
  expect([text, isError]).toEqual([text, undefined]);
  return structured.items.slice(1).map(({ row }) => row);
};

it('reads the views of the own organization only', async () => {
  const sql = 'SELECT DISTINCT org_id FROM analyst_spans';
  expect(await rowsOf(client, sql)).toEqual([['org_a']]);
  expect(await rowsOf(stranger, sql)).toEqual([['org_b']]);
  expect(await rowsOf(client, 'SHOW TABLES')).toContainEqual(['analyst_spans']);
});

it('keeps the digits of large integers', async () => {
  expect(await rowsOf(client, 'SELECT toUInt64(18446744073709551615) AS n, 1.5 AS f')).toEqual([
    ['18446744073709551615', 1.5],
  ]);
});

it('returns the first rows, and says that there are more', async () => {
  const { text, structured } = await client.tool('run_sql', { sql: 'SELECT number FROM numbers(100000)', max_rows: 5 });
  expect(structured.items.map(({ row }) => row)).toEqual([['number'], [0], [1], [2], [3], [4]]);
  expect([structured.info['truncated'], text]).toEqual([true, expect.stringContaining('LIMIT')]);
});

it('stays within its budget whatever the rows hold', async () => {
  const sql = `SELECT repeat('今天 " ', 2000) AS a, repeat('🧀', 1000) AS b FROM numbers(200)`;
  const { isError, text, structured } = await client.tool('run_sql', { sql, max_rows: 1000, max_chars: 100_000 });
  expect([isError, text]).toEqual([undefined, text]);
  for (const form of [text, JSON.stringify(structured)]) expect(countTokens(form)).toBeLessThanOrEqual(4000);
});

it.each([
  "SELECT * FROM file('/etc/passwd')",
  "SELECT * FROM url('http://127.0.0.1/')",
  'SELECT 1 FORMAT CSV',
  'SELEC 1',
  'DROP TABLE analyst_spans',
  'SELECT * FROM system.users',
  'SELECT nonsense FROM analyst_spans',
  'SELECT 1; SELECT 2',
])('refuses %s with the reason', async (sql) => {
  const { isError, text } = await client.tool('run_sql', { sql });
  expect([isError, text]).toEqual([true, expect.stringMatching(/^invalid_request: sql: \S/)]);
});
