import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { isAllowedFunction, LEFT_OUT } from '../../../api/telemetry/analysts/functions.ts';
import { documentTerms } from '../../../pipeline/domain/text/text_terms.ts';
import { ensureAnalyst } from '../../../sql/analysts/analyst.ts';
import { type ClickHouse, createClickHouse } from '../../../sql/client/client.ts';
import { migrate, readScripts } from '../../../sql/client/migrate.ts';
import { ORG_TABLES, orgUserStatements } from '../../../sql/analysts/org_views.ts';
import { runStatement, startTestEngine, type TestEngine } from '../../support/clickhouse.ts';
import { projectFile } from '../../support/deploy_files.ts';
import { ATTACKS } from './attacks.ts';
import { isRefused, plantFile, send, sentOf, told } from './two_orgs.ts';

let engine: TestEngine;
let client: ClickHouse;
const asAnalyst = (statement: string) => runStatement(engine.analystUrl, statement);
/** Texts that were moved, so that their words are in postings alone. */
const TEXTS = [
  ['chat', JSON.stringify([{ role: 'user', content: 'my\nreservation "x"' }]), 'It’s confirmed'],
  ['far', '東京都に住む iPhone用', 'Straße nach Köln, cafe\u0301'],
  ['plain', 'Plain text: the loop', ''],
] as const;
const VIEWS = readScripts().views.map(({ name }) => name.replace('.sql', ''));

beforeAll(async () => {
  engine = await startTestEngine();
  client = createClickHouse({ url: engine.url });
  await migrate(client, {});
  const run = (sql: string) => client.execute({ name: 'fill', sql, timeoutMs: 10_000 });
  await run(`INSERT INTO spans (org_id, started_at, ended_at, trace_id, span_id, event_key, model, cost_usd, input_tokens, attributes)
    SELECT 'org_a', toDateTime64('2026-01-01 00:00:00', 3, 'UTC') + number * 3600 AS at, at + toIntervalMillisecond(1500), 't', toString(number), number, 'm', 0.1, 10, '{"a":"x"}' FROM numbers(48)`);
  const trace = (sign: number, version: number, spans: number) =>
    run(`INSERT INTO traces (org_id, anchor, trace_key, trace_id, started_at, ended_at, outcome, spans, sign, version)
      SELECT 'org_a', toDateTime64('2026-01-01 00:00:00', 3, 'UTC') AS at, sipHash64('t'), 't', at, at + ${spans}, 'success', ${spans}, ${sign}, ${version}`);
  await trace(1, 1, 1);
  await trace(-1, 1, 1);
  await trace(1, 2, 2);
  await run(
    "INSERT INTO usage_events (org_id, hour, agent_id, events, storage_bytes, cost_usd) VALUES ('org_a', '2026-01-01 00:00:00', 'g', 3, 1500000, 0.1), ('org_a', '2026-01-01 00:00:00', 'g', 4, 500000, 0.2)",
  );
  await run(
    "INSERT INTO span_texts (org_id, span_id, prompt, log_seq) VALUES ('org_a', 'moved', 'p', 1), ('org_a', 'moving', 'p', 2)",
  );
  await run(
    "INSERT INTO span_texts_recent (org_id, span_id, prompt, log_seq) VALUES ('org_a', 'moving', 'p', 2), ('org_a', 'recent', 'p', 3)",
  );
  for (const [span_id, prompt, response] of TEXTS)
    await client.execute({
      name: 'fill',
      sql: "INSERT INTO span_texts (org_id, span_id, prompt, response) SELECT 'org_b', {span_id:String}, {prompt:String}, {response:String}",
      params: { span_id, prompt, response },
      timeoutMs: 10_000,
    });
});

afterAll(async () => {
  await client.close();
  await engine.remove();
});

const rows = async (sql: string): Promise<unknown[]> =>
  (await asAnalyst(`${sql} FORMAT JSONEachRow`))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);

describe('an analyst', () => {
  it('an analyst reads a row for each span, with its event id and duration', async () => {
    expect(
      await rows(
        "SELECT event_id, duration_ms, JSONExtractString(attributes, 'a') AS a FROM analyst_spans WHERE span_id = '31'",
      ),
    ).toEqual([{ event_id: 'evt_000000000000001f', duration_ms: 1500, a: 'x' }]);
  });

  it('an analyst reads a row for each trace in its current state', async () => {
    expect(await rows('SELECT trace_id, spans, duration_ms FROM analyst_traces')).toEqual([
      { trace_id: 't', spans: 2, duration_ms: 2000 },
    ]);
  });

  it('an analyst reads costs by day: new rows directly, merged ones from the projection', async () => {
    const costs = () => rows("SELECT * FROM analyst_costs_daily WHERE org_id = 'org_a' ORDER BY day");
    const expected = [
      { org_id: 'org_a', day: '2026-01-01', model: 'm', spans: 24, input_tokens: 240, output_tokens: 0, cost_usd: 2.4 },
      { org_id: 'org_a', day: '2026-01-02', model: 'm', spans: 24, input_tokens: 240, output_tokens: 0, cost_usd: 2.4 },
    ];
    expect(await costs()).toEqual(expected);
    await client.execute({ name: 'merge', sql: 'OPTIMIZE TABLE spans FINAL', timeoutMs: 10_000 });
    expect(await costs()).toEqual(expected);
    const plan = await client.rows<{ explain: string }>({
      name: 'plan',
      sql: "EXPLAIN SELECT * FROM analyst_costs_daily WHERE org_id = 'org_a' AND day >= '2026-01-02'",
      timeoutMs: 5000,
    });
    expect(plan.map(({ explain }) => explain).join('\n')).toContain('ReadFromMergeTree (p_model)');
  });

  it('an analyst reads usage by hour', async () => {
    expect(await rows('SELECT agent_id, events, storage_mb, cost_usd FROM analyst_usage')).toEqual([
      { agent_id: 'g', events: 7, storage_mb: 2, cost_usd: 0.3 },
    ]);
  });

  it('an analyst reads each text once, whichever table it is in', async () => {
    expect(await rows("SELECT span_id FROM analyst_texts WHERE org_id = 'org_a' ORDER BY span_id")).toEqual([
      { span_id: 'moved' },
      { span_id: 'moving' },
      { span_id: 'recent' },
    ]);
  });

  it('an analyst reads the words of a text, which the query computes where they are not stored', async () => {
    expect(await rows("SELECT span_id, words FROM analyst_texts WHERE org_id = 'org_b' ORDER BY span_id")).toEqual(
      TEXTS.map(([span_id, prompt, response]) => ({ span_id, words: documentTerms(prompt, response).words })),
    );
    await client.execute({
      name: 'fill',
      sql: "INSERT INTO span_texts_recent (org_id, span_id, prompt, words, log_seq) VALUES ('org_c', 'recent', 'p', 'stored words', 9)",
      timeoutMs: 10_000,
    });
    expect(await rows("SELECT words FROM analyst_texts WHERE org_id = 'org_c'")).toEqual([{ words: 'stored words' }]);
  });

  it.each([
    ["hasAllTokens(words, ['reservation', 'confirmed'])", ['chat']],
    ["hasAnyTokens(words, ['東京', 'loop'])", ['far', 'plain']],
    ["position(concat(' ', words, ' '), ' strasse nach koln ') > 0", ['far']],
    ["hasAnyTokens(words, ['role', 'content', 'nreservation'])", []],
  ])('an analyst finds texts by %s', async (condition, found) => {
    const answer = await asAnalyst(
      `SELECT span_id FROM analyst_texts WHERE org_id = 'org_b' AND ${condition} ORDER BY span_id FORMAT TSV`,
    );
    expect(answer.split('\n').filter((line) => line !== '')).toEqual(found);
  });

  it('a query of other columns of the texts computes no words', async () => {
    const plan = async (column: string): Promise<string> =>
      (
        await client.rows<{ explain: string }>({
          name: 'plan',
          sql: `EXPLAIN actions = 1 SELECT ${column} FROM analyst_texts WHERE org_id = 'org_b'`,
          timeoutMs: 5000,
        })
      )
        .map(({ explain }) => explain)
        .join('\n');
    expect(await plan('words')).toMatch(/extractAll.*prompt/s);
    expect(await plan('span_id')).not.toMatch(/extractAll|prompt|words/);
  });

  it('an analyst sees what each column means', async () => {
    for (const view of VIEWS) {
      const columns = (await rows(`DESCRIBE ${view}`)) as { name: string; comment: string }[];
      expect(columns.filter(({ comment }) => comment === '')).toEqual([]);
    }
  });

  it.each([
    'spans',
    'span_texts',
    'span_texts_recent',
    'span_words',
    'traces',
    'trace_lookup',
    'usage_events',
    'agent_activity',
    'landing_fences',
    'schema_migrations',
  ])('an analyst reads no table: %s', async (table) => {
    await expect(asAnalyst(`SELECT count() FROM ${table}`)).rejects.toThrow('ACCESS_DENIED');
  });

  it.each([
    'INSERT INTO analyst_spans SELECT * FROM analyst_spans',
    'DROP VIEW analyst_spans',
    'CREATE TABLE x (a UInt8) ENGINE = Memory',
    'SELECT 1 SETTINGS max_memory_usage = 0',
  ])('an analyst changes nothing: %s', async (statement) => {
    await expect(asAnalyst(statement)).rejects.toThrow(/ACCESS_DENIED|READONLY/);
  });
});

describe('the user', () => {
  it('the user analyst is left to the file of users where the server does not store users by SQL', async () => {
    expect(await ensureAnalyst(client, 'a password', { cluster: undefined, isShard: false })).toMatch(
      /privileges|storage/,
    );
  });
});

describe("the panels of the analysts' dashboard", () => {
  const { panels } = z
    .object({ panels: z.array(z.object({ title: z.string(), targets: z.array(z.object({ rawSql: z.string() })) })) })
    .parse(JSON.parse(projectFile('ops/dashboards/analysts.json')));
  /** Replaces the data source's macros with their values for the first week of the rows above. */
  const filled = (sql: string): string =>
    sql
      .replaceAll(
        /\$__timeFilter\((\w+)\)/g,
        "$1 >= toDateTime('2026-01-01 00:00:00') AND $1 <= toDateTime('2026-01-07 00:00:00')",
      )
      .replaceAll(/\$__dateFilter\((\w+)\)/g, "$1 >= toDate('2026-01-01') AND $1 <= toDate('2026-01-07')")
      .replaceAll('$org', 'org_a');
  const queries = panels.flatMap(({ title, targets }) => targets.map(({ rawSql }) => [title, filled(rawSql)] as const));

  it.each(queries)('%s', async (_title, sql) => {
    expect(sql).not.toContain('$');
    await expect(asAnalyst(`${sql} FORMAT JSONEachRow`)).resolves.toBeTypeOf('string');
  });

  it("the panels of the analysts' dashboard show data", async () => {
    expect(await rows(queries.find(([title]) => title === 'Cost')?.[1] ?? '')).toEqual([{ cost_usd: 4.8 }]);
  });
});

it('the image that deployments use has the version that is tested here', async () => {
  const [row] = z.array(z.object({ version: z.string() })).parse(await rows('SELECT version() AS version'));
  expect(row?.version).toMatch(
    new RegExp(`^${/clickhouse-server:([0-9.]+)/.exec(projectFile('ops/deploy/compose.yaml'))?.[1] ?? '?'}\\.`),
  );
});

describe('the lists of what analysts of one org may use', () => {
  it("the lists of functions for organizations' analysts name every function of the engine once", async () => {
    const all = await client.rows<{ name: string }>({
      name: 'functions',
      sql: 'SELECT name FROM system.functions',
      timeoutMs: 5000,
    });
    const allowed = all.filter(({ name }) => isAllowedFunction(name)).map(({ name }) => name);
    const leftOut = all.filter(({ name }) => LEFT_OUT.some(({ names }) => names.test(name))).map(({ name }) => name);
    expect(all.map(({ name }) => name).filter((name) => !allowed.includes(name) && !leftOut.includes(name))).toEqual(
      [],
    );
    expect(allowed.filter((name) => leftOut.includes(name))).toEqual([]);
  });

  it('the lists contain every table beneath the views', async () => {
    const views = await client.rows<{ as_select: string }>({
      name: 'views',
      sql: "SELECT as_select FROM system.tables WHERE database = 'millrace' AND engine = 'View'",
      timeoutMs: 5000,
    });
    const tables = views.flatMap(({ as_select }) =>
      [...as_select.matchAll(/(?:FROM|JOIN) millrace\.(\w+)/g)].map(([, name]) => name),
    );
    expect([...new Set(tables)].sort()).toEqual([...ORG_TABLES].sort());
  });

  it('the lists are valid statements where the engine stores users by SQL', async () => {
    for (const statement of orgUserStatements('millrace', 'ab'.repeat(32), 1_000_000, undefined))
      await client.rows({ name: 'parse', sql: `EXPLAIN AST ${statement}`, timeoutMs: 5000 });
  });
});

describe("the operator's analyst, who asks the engine directly", () => {
  it("the operator's analyst is denied everything that needs a right, and finds no password in readable files", async () => {
    const folder = await plantFile(client);
    const { username, password, origin } = new URL(engine.analystUrl);
    const wrong: string[] = [];
    for (const attack of ATTACKS.filter(({ operator: expected }) => expected !== 'not tried')) {
      const { headers, url, ...sent } = sentOf(attack, folder);
      const reply = await send(origin, {
        ...sent,
        url: { database: 'millrace', ...url },
        headers: { ...headers, 'X-ClickHouse-User': username, 'X-ClickHouse-Key': password },
      });
      expect(told(reply)).not.toMatch(/password_sha256|SERVICE_|root:x/);
      if (isRefused(reply) !== ((attack.operator ?? 'refused') === 'refused'))
        wrong.push(`${attack.query}: ${reply.text.slice(0, 150)}`);
    }
    expect(wrong).toEqual([]);
  });
});
