// How clients log in and query as an organization's analyst, and how analysts are created.
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { createClient } from '@clickhouse/client';
import { expect, it } from 'vitest';
import { ORG_ANALYST, orgAnalystPassword } from '../../../sql/analysts/org_views.ts';
import { call, KEY, startTestApi } from '../api/an_api.ts';
import { send } from './two_orgs.ts';
import { asOperator } from '../a_tenant.ts';
import { VIEWS, engine, nats, api, analyst, login, ask, make } from './an_analyst.ts';

it('an analyst queries with @clickhouse/client', async () => {
  const real = createClient({
    url: analyst.url,
    username: analyst.user,
    password: analyst.password,
    log: { level: 127 },
  });
  try {
    expect(await real.ping()).toEqual({ success: true });
    expect(
      await (await real.query({ query: 'SELECT count() AS n FROM analyst_spans', format: 'JSONEachRow' })).json(),
    ).toEqual([{ n: 500 }]);
    const bound = await real.query({
      query:
        'SELECT span_id, started_at, toUInt64(1) AS n FROM analyst_spans WHERE span_id = {id:String} AND org_id IN ({orgs:Array(String)})',
      query_params: { id: '31', orgs: ['org_a', 'org_b'] },
      format: 'JSON',
      clickhouse_settings: {
        date_time_output_format: 'iso',
        output_format_json_quote_64bit_integers: 1,
        max_execution_time: 30,
        max_result_rows: '5',
        session_timezone: 'UTC',
      },
    });
    expect((await bound.json()).data).toEqual([{ span_id: '31', started_at: '2026-01-01T00:00:31.000Z', n: '1' }]);
    let streamed = 0;
    const rows = await real.query({ query: 'SELECT number FROM numbers(200000)', format: 'JSONEachRow' });
    for await (const block of rows.stream()) streamed += block.length;
    expect(streamed).toBe(200_000);
    await expect(real.query({ query: 'SELECT nothing FROM analyst_spans' })).rejects.toMatchObject({
      code: '47',
      type: 'UNKNOWN_IDENTIFIER',
    });
    await expect(real.query({ query: "SELECT file('x')" })).rejects.toMatchObject({
      code: '497',
      type: 'ACCESS_DENIED',
    });
    await expect(real.query({ query: 'SELEC 1' })).rejects.toMatchObject({ code: '62', type: 'SYNTAX_ERROR' });
    await expect(
      real.insert({ table: 'analyst_spans', values: [{ org_id: 'org_b' }], format: 'JSONEachRow' }),
    ).rejects.toThrow();
  } finally {
    await real.close();
  }
  const wrong = createClient({ url: analyst.url, username: analyst.user, password: 'wrong', log: { level: 127 } });
  await expect(wrong.query({ query: 'SELECT 1' })).rejects.toMatchObject({
    code: '516',
    type: 'AUTHENTICATION_FAILED',
  });
  await wrong.close();
});

it('the first queries of Grafana and DBeaver are answered', async () => {
  for (const query of [
    'SELECT displayName(), version(), revision(), timezone()',
    "SELECT currentUser() AS user, timezone() AS timezone, version() AS version, getSetting('readonly') AS readonly FORMAT RowBinaryWithNamesAndTypes",
    'SELECT 1',
    'SELECT version()',
    'SHOW DATABASES',
    'SHOW TABLES',
    'SHOW TABLES FROM millrace_org',
    "SHOW COLUMNS FROM analyst_spans LIKE 'org%'",
    'SHOW CREATE TABLE analyst_spans',
    'EXISTS TABLE analyst_spans',
    'DESCRIBE TABLE analyst_spans',
    'DESC millrace_org.analyst_spans FORMAT JSON',
    'EXPLAIN SYNTAX SELECT 1',
    "SELECT name, comment FROM system.tables WHERE database = 'millrace_org'",
    "SELECT name, type FROM system.columns WHERE database = 'millrace_org' AND table = 'analyst_spans'",
    'SELECT name FROM system.databases',
    "SELECT toStartOfInterval(started_at, INTERVAL 60 second) AS time, quantile(0.95)(duration_ms), countIf(outcome = 'error') FROM analyst_spans GROUP BY time ORDER BY time",
    'WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT sum(n) FROM r',
    "SELECT arrayMap(x -> upper(x), arrayFold((a, x) -> a || x, ['a'], '') = '' ? ['a'] : ['b'])",
  ])
    expect([query, (await ask(query)).text]).toEqual([query, expect.not.stringContaining('Exception') as string]);
  expect((await ask('SHOW TABLES')).text.trim().split('\n').sort()).toEqual([...VIEWS].sort());
});

it('an analyst logs in by header, Basic or parameter, over GET or POST, and chooses encodings and formats', async () => {
  const { user, password } = analyst;
  const basic = { Authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` };
  const replies = [
    await send(api.url, { method: 'GET', url: { query: 'SELECT 1' }, headers: basic }),
    await send(api.url, { method: 'GET', url: { query: 'SELECT 1', user, password } }),
    await send(api.url, { url: { query: 'SELECT' }, body: '1', headers: login() }),
    await ask(gzipSync('SELECT 1'), { headers: { 'Content-Encoding': 'gzip' } }),
    await ask(brotliCompressSync('SELECT 1'), { headers: { 'Content-Encoding': 'br' } }),
  ];
  expect(replies.map(({ status, text }) => [status, text])).toEqual(replies.map(() => [200, '1\n']));
  const packed = await ask('SELECT 1', {
    url: { enable_http_compression: '1' },
    headers: { 'Accept-Encoding': 'gzip' },
  });
  expect(packed.headers['content-encoding']).toBe('gzip');
  const json = await ask('SELECT 1 AS a', { url: { default_format: 'JSONEachRow', query_id: 'mine' } });
  expect([json.text, json.headers['x-clickhouse-query-id'], json.headers['x-clickhouse-summary']]).toEqual([
    '{"a":1}\n',
    'mine',
    undefined,
  ]);
});

it('every answer to an analyst has a request id of its own: /ping, rows, errors and refusals', async () => {
  const replies = [
    await ask('SELECT 1'),
    await ask('SELECT nothing FROM analyst_spans'),
    await ask("SELECT file('x')"),
    await ask('SELECT 1', { headers: login({ user: analyst.user, password: 'wrong' }) }),
    await send(`${api.url}/ping`, { method: 'GET' }),
  ];
  expect(replies.map(({ status }) => status === 200)).toEqual([true, false, false, false, true]);
  const ids = replies.map(({ headers }) => String(headers['x-request-id']));
  expect(ids.filter((id) => !/^req_[0-9a-f]{32}$/.test(id))).toEqual([]);
  expect(new Set(ids).size).toBe(ids.length);
});

it('a request without a login is answered by the API, and one with a wrong login is refused', async () => {
  expect((await send(api.url, { method: 'GET' })).headers['x-clickhouse-exception-code']).toBeUndefined();
  expect(
    (await send(api.url, { method: 'GET', headers: { Authorization: `Bearer ${KEY}` } })).headers[
      'x-clickhouse-exception-code'
    ],
  ).toBeUndefined();
  for (const headers of [
    login({ user: analyst.user, password: '' }),
    login({ user: '', password: analyst.password }),
    login({ user: ORG_ANALYST, password: orgAnalystPassword('test-app-password') }),
    login({ user: 'app', password: 'test-app-password' }),
    login({ user: '__proto__', password: '' }),
  ]) {
    const reply = await send(api.url, { body: 'SELECT 1', headers });
    expect([reply.status, reply.headers['x-clickhouse-exception-code']]).toEqual([403, '516']);
  }
});

it('making an analyst shows the password once and bounds names and their number', async () => {
  const answer = await call(api, 'POST', '/admin/orgs/org_b/analysts', { body: { name: 'b' }, headers: asOperator });
  expect(answer.json?.['data']).toEqual({
    user: expect.stringMatching(/^analyst_[0-9a-f]{16}$/) as string,
    password: expect.stringMatching(/^[\w-]{43}$/) as string,
    url: api.url,
  });
  const again = await call(api, 'POST', '/admin/orgs/org_b/analysts', { body: { name: ' b ' }, headers: asOperator });
  expect([again.status, again.json?.['code']]).toEqual([409, 'conflict']);
  for (const name of ['', ' ', 'x'.repeat(101), 1]) {
    const bad = await call(api, 'POST', '/admin/orgs/org_b/analysts', { body: { name }, headers: asOperator });
    expect([bad.status, bad.json?.['detail']]).toEqual([422, expect.stringContaining('name') as string]);
  }
  const listed = await call(api, 'GET', '/admin/orgs/org_b/analysts', { headers: asOperator });
  expect(listed.text).not.toMatch(/password|hash/);
  expect((listed.json?.['data'] as { name: string }[]).map(({ name }) => name)).toContain('b');
  expect(
    (await call(api, 'POST', '/admin/orgs/nobody/analysts', { body: { name: 'b' }, headers: asOperator })).json?.[
      'code'
    ],
  ).toBe('org_not_found');
  expect(
    (await call(api, 'DELETE', `/admin/orgs/org_b/analysts/${analyst.user}`, { headers: asOperator })).status,
  ).toBe(404);
  const there = (listed.json?.['data'] as unknown[]).length;
  for (let made = there; made < 20; made++) await make('org_b');
  const tooMany = await call(api, 'POST', '/admin/orgs/org_b/analysts', {
    body: { name: 'one more' },
    headers: asOperator,
  });
  expect([tooMany.status, tooMany.json?.['detail']]).toEqual([409, expect.stringContaining('20') as string]);
});

it('making an analyst is refused with a reason where the engine does not confine analysts', async () => {
  // This database has none of the grants and row policies of the engine's users file.
  const elsewhere = engine.url.replace(/millrace$/, 'elsewhere');
  const third = await startTestApi({ natsUrl: nats.url, clickhouseUrl: elsewhere });
  try {
    const refused = await call(third, 'POST', '/admin/orgs/org_a/analysts', {
      body: { name: 'x' },
      headers: asOperator,
    });
    expect([refused.status, refused.json?.['code'], refused.json?.['detail']]).toEqual([
      409,
      'conflict',
      expect.stringMatching(/external ClickHouse/) as string,
    ]);
    const asked = await send(third.url, { body: 'SELECT 1', headers: login() });
    expect([asked.status, asked.headers['x-clickhouse-exception-code']]).toEqual([503, '210']);
  } finally {
    await third.close();
  }
});
