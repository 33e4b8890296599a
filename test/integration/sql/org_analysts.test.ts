// What an organization's analyst can and cannot read, and the limits on an analyst's queries.
import { expect, it } from 'vitest';
import { ORG_ANALYST, ORG_HEADER, orgAnalystPassword } from '../../../sql/analysts/org_views.ts';
import { eventually } from '../../support/wait.ts';
import { call } from '../api/an_api.ts';
import { ATTACKS, PLACES } from './attacks.ts';
import { isRefused, SECRET, send, sentOf, told } from './two_orgs.ts';
import { asOperator } from '../a_tenant.ts';
import { VIEWS, engine, client, api, other, folder, login, ask, make } from './an_analyst.ts';

it.each(ATTACKS.map((attack) => [JSON.stringify([attack.query, attack.url ?? {}]), attack] as const))(
  'an analyst gets nothing of other organizations by %s',
  async (_, attack) => {
    const { headers, ...sent } = sentOf(attack, folder);
    const reply = await send(api.url, { ...sent, headers: { ...headers, ...login() } });
    expect(told(reply)).not.toMatch(/SECRET_OF_ORG_B|org_b\b.*\bspans|CONTENT_OF_A_FILE|password_sha256|SERVICE_/);
    expect([isRefused(reply), reply.text]).toEqual([attack.by !== 'own' || isRefused(reply), reply.text]);
    if (attack.by === 'own' && reply.status === 200) expect(reply.text).not.toMatch(/org_b/);
  },
);

it('every function that a query of an analyst calls is recognized', async () => {
  const unseen: string[] = [];
  for (const place of PLACES) {
    const query = place.replaceAll('{f}', `file('${folder}/canary.txt')`);
    const { text } = await ask(query);
    if (!text.includes('Not for analysts: function file')) unseen.push(`${place}: ${text.slice(0, 200)}`);
  }
  expect(unseen).toEqual([]);
});

it('the engine alone refuses an analyst what needs a right', async () => {
  const headers = {
    'X-ClickHouse-User': ORG_ANALYST,
    'X-ClickHouse-Key': orgAnalystPassword('test-app-password'),
    [ORG_HEADER]: 'org_a',
  };
  const open: string[] = [];
  for (const attack of ATTACKS.filter(({ by, url }) => (by === 'refused' || by === 'engine') && url === undefined)) {
    const reply = await send(`http://127.0.0.1:${engine.server.httpPort}`, {
      ...sentOf(attack, folder),
      url: { database: 'millrace_org' },
      headers: { ...attack.headers, ...headers },
    });
    expect(told(reply)).not.toMatch(/SECRET_OF_ORG_B|CONTENT_OF_A_FILE|password_sha256/);
    if (!isRefused(reply)) open.push(attack.query);
  }
  expect(open).toEqual([]);
});

it('an analyst sees the rows of its organization in every view', async () => {
  for (const view of VIEWS) {
    const reply = await ask(`SELECT DISTINCT org_id FROM ${view}`);
    expect([view, reply.text]).toEqual([view, 'org_a\n']);
  }
  expect((await ask('SELECT count(), uniq(prompt) FROM analyst_texts')).text).toBe('501\t1\n');
});

it('analysts of two organizations see different rows', async () => {
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
])('no condition of an analyst is evaluated on rows of other organizations: %s.%s', async (view, column) => {
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

it('an analyst learns nothing of other organizations from the statistics of the engine', async () => {
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

it('queries of an analyst use the primary key, because the organization is a constant to the engine', async () => {
  const plan = await send(`http://127.0.0.1:${engine.server.httpPort}`, {
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
])('a query of an analyst is bounded: %s', async (_, query, problem, url) => {
  expect((await ask(query, { url })).text).toMatch(problem);
});

it('a query above the maximum of its organization waits, delays no other organization, and ends with its caller', async () => {
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
          sql: 'SELECT count() AS n FROM system.processes WHERE position(query_id, {user:String}) > 0 AND query LIKE {like:String}',
          params: { user: `:${user}-`, like: 'SELECT%' },
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

it('deleting an analyst revokes access in every process and cancels running queries', async () => {
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
          sql: `SELECT 1 FROM system.processes WHERE position(query_id, ':${gone.user}-') > 0 AND query LIKE 'SELECT%'`,
          timeoutMs: 5000,
        })
      ).length === 1,
    { withinMs: 20_000, what: 'its query in the engine' },
  );
  const answer = await call(api, 'DELETE', `/admin/orgs/org_a/analysts/${gone.user}`, { headers: asOperator });
  expect(answer.json?.['data']).toEqual({ user: gone.user, deleted: true });
  expect((await slow).text).toMatch(/taken away/);
  for (const at of [api, other])
    await eventually(async () => (await send(at.url, { body: 'SELECT 1', headers: login(gone) })).status === 403, {
      what: 'a refusal',
    });
});
