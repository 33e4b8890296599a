import { randomUUID } from 'node:crypto';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { createClient } from '@clickhouse/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createClickHouse, type ClickHouse } from '../../../sql/client/client.ts';
import { migrate } from '../../../sql/client/migrate.ts';
import { ORG_ANALYST, ORG_HEADER, orgAnalystPassword } from '../../../sql/analysts/org_views.ts';
import { startTestEngine, type TestEngine } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';
import { ADMIN_TOKEN, call, KEY, startTestApi, type TestApi } from '../api/an_api.ts';
import { ATTACKS, PLACES } from './attacks.ts';
import { fillTwoOrgs, isRefused, plantFile, type Reply, SECRET, send, type Sent, sentOf, told } from './two_orgs.ts';

const VIEWS = ['spans', 'texts', 'traces', 'usage', 'costs_daily', 'scores', 'feedback'].map(
  (name) => `analyst_${name}`,
);

let engine: TestEngine;
let nats: TestNats;
let client: ClickHouse;
let api: TestApi;
let other: TestApi;
let folder: string;
let analyst: { user: string; password: string; url: string };

const login = (who: { user: string; password: string } = analyst) => ({
  'X-ClickHouse-User': who.user,
  'X-ClickHouse-Key': who.password,
});
const ask = (body: string | Buffer, sent: Sent = {}, at = api): Promise<Reply> =>
  send(at.url, { ...sent, body, headers: { ...login(), ...sent.headers } });
const operator = { Authorization: `Bearer ${ADMIN_TOKEN}`, 'X-Org-Api-Key': undefined, 'X-Org-Id': undefined };
const make = async (org_id: string, name: string = randomUUID()): Promise<typeof analyst> => {
  const answer = await call(api, 'POST', `/admin/orgs/${org_id}/analysts`, { body: { name }, headers: operator });
  expect(answer.status, answer.text).toBe(201);
  return answer.json?.['data'] as typeof analyst;
};

beforeAll(async () => {
  [engine, nats] = await Promise.all([startTestEngine({ memoryMaxBytes: 1_500_000_000 }), startTestNats()]);
  client = createClickHouse({ url: engine.url });
  await migrate(client, {});
  await fillTwoOrgs(client);
  folder = await plantFile(client);
  api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: engine.url });
  other = await startTestApi({ natsUrl: nats.url, clickhouseUrl: engine.url });
  for (const org_id of ['org_a', 'org_b'])
    await call(api, 'POST', '/admin/orgs', {
      body: {
        org_id,
        name: org_id,
        plan_name: 'enterprise',
        owner: { user_id: 'u', email: 'u@example.com' },
        rate_limits: null,
      },
      headers: operator,
    });
  analyst = await make('org_a', 'first');
});

afterAll(async () => {
  await api.close();
  await other.close();
  await client.close();
  await Promise.all([engine.remove(), nats.remove()]);
});

describe("an org's analyst", () => {
  it.each(ATTACKS.map((attack) => [JSON.stringify([attack.query, attack.url ?? {}]), attack] as const))(
    'gets nothing by %s',
    async (_, attack) => {
      const { headers, ...sent } = sentOf(attack, folder);
      const reply = await send(api.url, { ...sent, headers: { ...headers, ...login() } });
      expect(told(reply)).not.toMatch(/SECRET_OF_ORG_B|org_b\b.*\bspans|CONTENT_OF_A_FILE|password_sha256|SERVICE_/);
      expect([isRefused(reply), reply.text]).toEqual([attack.by !== 'own' || isRefused(reply), reply.text]);
      if (attack.by === 'own' && reply.status === 200) expect(reply.text).not.toMatch(/org_b/);
    },
  );

  it('is seen to call a function wherever it does', async () => {
    const unseen: string[] = [];
    for (const place of PLACES) {
      const query = place.replaceAll('{f}', `file('${folder}/canary.txt')`);
      const { text } = await ask(query);
      if (!text.includes('Not for analysts: function file')) unseen.push(`${place}: ${text.slice(0, 200)}`);
    }
    expect(unseen).toEqual([]);
  });

  it('is held by the engine alone too, where the engine asks for a right', async () => {
    const headers = {
      'X-ClickHouse-User': ORG_ANALYST,
      'X-ClickHouse-Key': orgAnalystPassword('test-app-password'),
      [ORG_HEADER]: 'org_a',
    };
    const open: string[] = [];
    for (const attack of ATTACKS.filter(({ by, url }) => (by === 'refused' || by === 'engine') && url === undefined)) {
      const reply = await send(`http://127.0.0.1:${String(engine.server.httpPort)}`, {
        ...sentOf(attack, folder),
        url: { database: 'millrace_org' },
        headers: { ...attack.headers, ...headers },
      });
      expect(told(reply)).not.toMatch(/SECRET_OF_ORG_B|CONTENT_OF_A_FILE|password_sha256/);
      if (!isRefused(reply)) open.push(attack.query);
    }
    expect(open).toEqual([]);
  });

  it('sees its own rows, in every view', async () => {
    for (const view of VIEWS) {
      const reply = await ask(`SELECT DISTINCT org_id FROM ${view}`);
      expect([view, reply.text]).toEqual([view, 'org_a\n']);
    }
    expect((await ask('SELECT count(), uniq(prompt) FROM analyst_texts')).text).toBe('501\t1\n');
  });

  it("sees what another org's analyst does not, and the other way round", async () => {
    const b = await make('org_b');
    const counted = await send(api.url, {
      body: 'SELECT DISTINCT org_id, trace_id FROM analyst_spans',
      headers: login(b),
    });
    expect(counted.text).toBe(`org_b\t${SECRET}\n`);
  });

  it.each([
    ['analyst_spans', 'trace_id'],
    ['analyst_spans', 'attributes'],
    ['analyst_texts', 'prompt'],
    ['analyst_traces', 'trace_id'],
    ['analyst_usage', 'agent_id'],
    ['analyst_scores', 'reason'],
    ['analyst_feedback', 'comment'],
  ])('has no condition of its own tested on rows of others: %s.%s', async (view, column) => {
    const leaks = `throwIf(position(${column}, '${SECRET}') > 0)`;
    for (const query of [
      `SELECT count() > 0 FROM ${view} WHERE ${leaks} = 0`,
      `SELECT count() > 0 FROM ${view} WHERE org_id != 'x' AND ${leaks} = 0 AND throwIf(org_id = 'org_b') = 0`,
      `SELECT count() > 0 FROM (SELECT ${leaks} AS l FROM ${view} ORDER BY l) WHERE l = 0`,
      `SELECT count() > 0 FROM ${view} AS a JOIN ${view} AS b ON a.org_id = b.org_id AND throwIf(position(b.${column}, '${SECRET}') > 0) = 0`,
      `SELECT count() > 0 FROM ${view} GROUP BY ${leaks} HAVING ${leaks} = 0`,
      `SELECT 1 IN (SELECT ${leaks} + 1 FROM ${view})`,
    ])
      expect([query, (await ask(query)).text]).toEqual([query, '1\n']);
  });

  it('learns nothing of others from what the engine keeps beside the rows', async () => {
    const answers: string[] = [];
    for (const query of [
      'SELECT count() FROM analyst_spans',
      'SELECT max(started_at) FROM analyst_spans',
      "SELECT count() FROM analyst_spans WHERE model = 'n'",
      "SELECT count() FROM analyst_texts WHERE hasAnyTokens(prompt, ['SECRET', 'OF', 'ORG', 'B'])",
      "SELECT count() FROM analyst_texts WHERE prompt LIKE '%SECRET%' OR hasToken(prompt, 'SECRET')",
      'SELECT sum(spans) FROM analyst_costs_daily',
      `SELECT uniq(trace_id) FROM analyst_spans WHERE trace_id IN ('own', '${SECRET}')`,
    ])
      answers.push((await ask(query)).text.trim());
    expect(answers).toEqual(['500', '2026-01-01 00:08:19.000', '0', '0', '0', '500', '1']);
  });

  it('reads by the primary key: the org is a constant to the engine', async () => {
    const plan = await send(`http://127.0.0.1:${String(engine.server.httpPort)}`, {
      url: { database: 'millrace_org' },
      body: "EXPLAIN indexes = 1 SELECT * FROM analyst_texts WHERE started_at > '2026-01-01 00:05:00'",
      headers: {
        'X-ClickHouse-User': ORG_ANALYST,
        'X-ClickHouse-Key': orgAnalystPassword('test-app-password'),
        [ORG_HEADER]: 'org_a',
      },
    });
    expect(plan.text).toMatch(/PrimaryKey\s+[│ ]*Keys:\s+[│ ]*org_id\s+[│ ]*started_at/);
  });

  it.each([
    [
      'a query that takes memory',
      'SELECT length(groupArray(toString(number))) FROM numbers(1000000000)',
      /MEMORY_LIMIT_EXCEEDED/,
      {},
    ],
    [
      'a query that takes time',
      'SELECT count() FROM numbers(100000000000) WHERE NOT ignore(sipHash64(number))',
      /TIMEOUT_EXCEEDED/,
      { max_execution_time: '1' },
    ],
    [
      'a large answer',
      'SELECT number FROM numbers(1000) FORMAT TSV',
      /TOO_MANY_ROWS_OR_BYTES/,
      { max_result_rows: '10' },
    ],
    ['a long query', `SELECT '${'x'.repeat(200_000)}'`, /larger than 131072 bytes/, {}],
  ])('is bounded: %s', async (_, query, problem, url) => {
    expect((await ask(query, { url })).text).toMatch(problem);
  });

  it('waits while its org has as many queries as may be, holds nobody else up, and ends with its caller', async () => {
    const { user, password } = await make('org_a');
    const running = new AbortController();
    const slow = () =>
      fetch(
        `${api.url}/?query=${encodeURIComponent('SELECT count() FROM numbers(100000000000) WHERE NOT ignore(sipHash64(number))')}`,
        {
          headers: login({ user, password }),
          signal: running.signal,
        },
      ).then(
        (response) => response.status,
        () => 'gone',
      );
    const four = [slow(), slow(), slow(), slow()];
    const inEngine = async (): Promise<number> =>
      Number(
        (
          await client.rows<{ n: string }>({
            name: 'running',
            sql: 'SELECT count() AS n FROM system.processes WHERE startsWith(query_id, {user:String}) AND query LIKE {like:String}',
            params: { user: `${user}-`, like: 'SELECT%' },
            timeoutMs: 5000,
          })
        )[0]?.n,
      );
    await eventually(async () => (await inEngine()) === 4, { withinMs: 20_000, what: 'four queries in the engine' });
    let answered = false;
    const fifth = ask('SELECT 1').then(({ text }) => {
      answered = true;
      return text;
    });
    expect((await send(api.url, { body: 'SELECT 1', headers: login(await make('org_b')) })).text).toBe('1\n');
    expect(answered).toBe(false);
    running.abort();
    expect(await Promise.all(four)).toEqual(['gone', 'gone', 'gone', 'gone']);
    await eventually(async () => (await inEngine()) === 0, {
      withinMs: 20_000,
      what: 'queries that end with their callers',
    });
    expect(await fifth).toBe('1\n');
  });

  it('is gone everywhere at once when taken away, with its queries', async () => {
    const gone = await make('org_a');
    const slow = send(other.url, {
      body: 'SELECT count() FROM numbers(100000000000) WHERE NOT ignore(sipHash64(number))',
      headers: login(gone),
    });
    await eventually(
      async () =>
        (
          await client.rows({
            name: 'running',
            sql: `SELECT 1 FROM system.processes WHERE startsWith(query_id, '${gone.user}-') AND query LIKE 'SELECT%'`,
            timeoutMs: 5000,
          })
        ).length === 1,
      { withinMs: 20_000, what: 'its query in the engine' },
    );
    const answer = await call(api, 'DELETE', `/admin/orgs/org_a/analysts/${gone.user}`, { headers: operator });
    expect(answer.json?.['data']).toEqual({ user: gone.user, deleted: true });
    expect((await slow).text).toMatch(/taken away/);
    for (const at of [api, other])
      await eventually(async () => (await send(at.url, { body: 'SELECT 1', headers: login(gone) })).status === 403, {
        what: 'a refusal',
      });
  });
});

describe('a client', () => {
  it('asks with @clickhouse/client', async () => {
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

  it('begins as Grafana and DBeaver do', async () => {
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

  it('is let in by header, Basic or parameter, over GET or POST, and asks for encodings and formats', async () => {
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

  it('gets a request id of its own with every answer: /ping, rows, errors and refusals', async () => {
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

  it('that brings no login meets the API, and a wrong one gets nothing', async () => {
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
});

describe('making analysts', () => {
  it('shows a password once, and keeps names and their number in bounds', async () => {
    const answer = await call(api, 'POST', '/admin/orgs/org_b/analysts', { body: { name: 'b' }, headers: operator });
    expect(answer.json?.['data']).toEqual({
      user: expect.stringMatching(/^analyst_[0-9a-f]{16}$/) as string,
      password: expect.stringMatching(/^[\w-]{43}$/) as string,
      url: api.url,
    });
    const again = await call(api, 'POST', '/admin/orgs/org_b/analysts', { body: { name: ' b ' }, headers: operator });
    expect([again.status, again.json?.['code']]).toEqual([409, 'conflict']);
    for (const name of ['', ' ', 'x'.repeat(101), 1]) {
      const bad = await call(api, 'POST', '/admin/orgs/org_b/analysts', { body: { name }, headers: operator });
      expect([bad.status, bad.json?.['detail']]).toEqual([422, expect.stringContaining('name') as string]);
    }
    const listed = await call(api, 'GET', '/admin/orgs/org_b/analysts', { headers: operator });
    expect(listed.text).not.toMatch(/password|hash/);
    expect((listed.json?.['data'] as { name: string }[]).map(({ name }) => name)).toContain('b');
    expect(
      (await call(api, 'POST', '/admin/orgs/nobody/analysts', { body: { name: 'b' }, headers: operator })).json?.[
        'code'
      ],
    ).toBe('org_not_found');
    expect(
      (await call(api, 'DELETE', `/admin/orgs/org_b/analysts/${analyst.user}`, { headers: operator })).status,
    ).toBe(404);
    const there = (listed.json?.['data'] as unknown[]).length;
    for (let made = there; made < 20; made++) await make('org_b');
    const tooMany = await call(api, 'POST', '/admin/orgs/org_b/analysts', {
      body: { name: 'one more' },
      headers: operator,
    });
    expect([tooMany.status, tooMany.json?.['detail']]).toEqual([409, expect.stringContaining('20') as string]);
  });

  it('is refused with a reason where the engine does not confine them', async () => {
    // This database has none of the grants and row policies of the file of users.
    const elsewhere = engine.url.replace(/millrace$/, 'elsewhere');
    const third = await startTestApi({ natsUrl: nats.url, clickhouseUrl: elsewhere });
    try {
      const refused = await call(third, 'POST', '/admin/orgs/org_a/analysts', {
        body: { name: 'x' },
        headers: operator,
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
});
