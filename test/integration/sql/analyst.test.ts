import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ensureAnalyst } from '../../../sql/analyst.ts';
import { type ClickHouse, createClickHouse } from '../../../sql/client.ts';
import { migrate, readScripts } from '../../../sql/migrate.ts';
import { runStatement, startTestEngine, type TestEngine } from '../../support/clickhouse.ts';

let engine: TestEngine;
let client: ClickHouse;
const asAnalyst = (statement: string) => runStatement(engine.analystUrl, statement);
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
      SELECT 'org_a', toDateTime64('2026-01-01 00:00:00', 3, 'UTC') AS at, sipHash64('t'), 't', at, at + ${String(spans)}, 'success', ${String(spans)}, ${String(sign)}, ${String(version)}`);
  await trace(1, 1, 1);
  await trace(-1, 1, 1);
  await trace(1, 2, 2);
  await run(
    "INSERT INTO usage_events (org_id, hour, agent_id, events, storage_bytes, cost_usd) VALUES ('org_a', '2026-01-01 00:00:00', 'g', 3, 1500000, 0.1), ('org_a', '2026-01-01 00:00:00', 'g', 4, 500000, 0.2)",
  );
  await run("INSERT INTO span_texts (org_id, span_id, prompt, log_seq) VALUES ('org_a', 'moved', 'p', 1), ('org_a', 'moving', 'p', 2)");
  await run(
    "INSERT INTO span_texts_recent (org_id, span_id, prompt, log_seq) VALUES ('org_a', 'moving', 'p', 2), ('org_a', 'recent', 'p', 3)",
  );
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
  it('reads a row a span, with its event id and its duration', async () => {
    expect(
      await rows("SELECT event_id, duration_ms, JSONExtractString(attributes, 'a') AS a FROM analyst_spans WHERE span_id = '31'"),
    ).toEqual([{ event_id: 'evt_000000000000001f', duration_ms: 1500, a: 'x' }]);
  });

  it('reads a row a trace, as of now', async () => {
    expect(await rows('SELECT trace_id, spans, duration_ms FROM analyst_traces')).toEqual([{ trace_id: 't', spans: 2, duration_ms: 2000 }]);
  });

  it('reads costs by day', async () => {
    expect(await rows("SELECT * FROM analyst_costs_daily WHERE org_id = 'org_a' ORDER BY day")).toEqual([
      { org_id: 'org_a', day: '2026-01-01', model: 'm', spans: 24, input_tokens: 240, output_tokens: 0, cost_usd: 2.4 },
      { org_id: 'org_a', day: '2026-01-02', model: 'm', spans: 24, input_tokens: 240, output_tokens: 0, cost_usd: 2.4 },
    ]);
    const plan = await client.rows<{ explain: string }>({
      name: 'plan',
      sql: "EXPLAIN SELECT * FROM analyst_costs_daily WHERE org_id = 'org_a' AND day >= '2026-01-02'",
      timeoutMs: 5000,
    });
    expect(plan.map(({ explain }) => explain).join('\n')).toContain('ReadFromMergeTree (p_model)');
  });

  it('reads usage by hour', async () => {
    expect(await rows('SELECT agent_id, events, storage_mb, cost_usd FROM analyst_usage')).toEqual([
      { agent_id: 'g', events: 7, storage_mb: 2, cost_usd: 0.3 },
    ]);
  });

  it('reads each text once, wherever it is', async () => {
    expect(await rows('SELECT span_id FROM analyst_texts ORDER BY span_id')).toEqual([
      { span_id: 'moved' },
      { span_id: 'moving' },
      { span_id: 'recent' },
    ]);
  });

  it('sees what each column means', async () => {
    for (const view of VIEWS) {
      const columns = (await rows(`DESCRIBE ${view}`)) as { name: string; comment: string }[];
      expect(columns.filter(({ comment }) => comment === '')).toEqual([]);
    }
  });

  it.each([
    'spans',
    'span_texts',
    'span_texts_recent',
    'traces',
    'trace_lookup',
    'usage_events',
    'agent_activity',
    'landing_fences',
    'schema_migrations',
  ])('reads no table: %s', async (table) => {
    await expect(asAnalyst(`SELECT count() FROM ${table}`)).rejects.toThrow('ACCESS_DENIED');
  });

  it.each([
    'INSERT INTO analyst_spans SELECT * FROM analyst_spans',
    'DROP VIEW analyst_spans',
    'CREATE TABLE x (a UInt8) ENGINE = Memory',
    'SELECT 1 SETTINGS max_memory_usage = 0',
  ])('changes nothing: %s', async (statement) => {
    await expect(asAnalyst(statement)).rejects.toThrow(/ACCESS_DENIED|READONLY/);
  });
});

describe('the user', () => {
  it('is left to the file of users where the server keeps none by SQL', async () => {
    expect(await ensureAnalyst(client, 'a password')).toMatch(/privileges|storage/);
  });
});
