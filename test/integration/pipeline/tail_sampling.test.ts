// Tail sampling on the real engine: buffered traces survive kills, are evicted by age, and are
// counted.
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { keptByRate, PROFILE_RATE } from '../../../pipeline/domain/traces/keep_rules.ts';
import type { IngestEvent } from '../../../schemas/codec.ts';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { logged, openTestLog, PARTITIONS, startWorker } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';
import { call, ORG, startTestApi, type TestApi } from '../api/an_api.ts';
import { aTenant } from '../a_tenant.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 600_000 });

const partitionOf = (event: IngestEvent): number => Number(event.trace_id.split('-')[1]) % PARTITIONS;

let database: TestDatabase;
let nats: TestNats;
let api: TestApi;
const LONG = { SERVICE_TRACE_GRACE_MS: '600000', SERVICE_TRACE_IDLE_MS: '600000' };
const more = { SERVICE_SAMPLING_PROFILE: 'balanced', SERVICE_SAMPLING_TAIL: 'true' };
const spawn = (env: Record<string, string> = {}) =>
  startWorker({ natsUrl: nats.url, clickhouseUrl: database.url, more: { ...more, ...LONG, ...env } });
const count = async (sql: string): Promise<number> => Number((await database.run(sql)).trim());
const usage = (events: number) =>
  eventually(async () => (await count('SELECT sum(events) FROM usage_events')) === events, { what: 'usage' });
const event = (trace_id: string, n: number, outcome = 'success'): IngestEvent =>
  logged(
    'chatcompletion',
    {
      request: { model: 'gpt-4o', messages: [{ role: 'user', content: `${trace_id} question ${n}` }] },
      response: {
        choices: [{ index: 0, message: { role: 'assistant', content: 'answer' } }],
        usage: { prompt_tokens: 10, completion_tokens: 1 },
      },
      duration_ms: 5,
      outcome,
      trace_id,
      ...(n === 0 ? {} : { parent_span_id: 'spn_root' }),
    },
    { org_id: ORG },
  );

beforeAll(async () => {
  [database, nats] = await Promise.all([createTestDatabase(), startTestNats()]);
  api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: database.url });
});
afterAll(async () => {
  await api.close();
  await nats.remove();
  await database.drop();
});

it('buffered traces survive kills exactly once and are decided by all of their spans', async () => {
  const log = await openTestLog(nats.url);
  const ids = Array.from({ length: 200 }, (_, i) => `trace-${i}`).filter(
    (id) => !keptByRate(id, PROFILE_RATE.balanced),
  );
  const [failing, fine] = [ids.slice(0, 40), ids.slice(40)];
  const publish = (traces: readonly string[], n: number, outcome?: string): Promise<void> =>
    log.publish(
      traces.map((id) => event(id, n, outcome)),
      partitionOf,
    );
  let worker = spawn();
  try {
    await worker.ready;
    await publish(ids, 0);
    await publish(ids, 1);
    await usage(2 * ids.length);
    // The worker buffers every trace: usage has landed, spans have not.
    expect(await count('SELECT count() FROM spans')).toBe(0);
    worker.kill('SIGKILL');
    await worker.exited;
    worker = spawn();
    await worker.ready;
    await publish(failing, 2, 'error');
    await eventually(async () => (await count('SELECT sum(spans * sign) FROM traces')) === 3 * failing.length, {
      what: 'failing traces',
    });
    await eventually(async () => (await count('SELECT count() FROM spans WHERE sampled')) === 3 * failing.length);
    expect(await count('SELECT count() FROM spans WHERE NOT sampled')).toBe(0);
    // The worker drains and shuts down. The other traces stay undecided.
    worker.kill('SIGTERM');
    await worker.exited;
    worker = spawn({ SERVICE_TRACE_GRACE_MS: '100', SERVICE_TRACE_IDLE_MS: '100' });
    await worker.ready;
    await eventually(async () => (await count('SELECT sum(sign) FROM traces')) === ids.length, {
      what: 'every trace',
    });
    // A late span gets the decision of its trace.
    await publish(ids, 3);
    const total = 3 * ids.length + failing.length;
    await usage(total);
    // Rows of traces land last.
    await eventually(async () => (await count('SELECT sum(spans * sign) FROM traces')) >= total, {
      what: 'late spans',
    });
    const rows = await database.run(
      'SELECT count(), uniqExact(event_key), countIf(sampled), sum(input_tokens), sum(cost_usd) = (SELECT sum(cost_usd) FROM usage_events) FROM spans',
    );
    expect(rows.trim().split('\t').map(Number)).toEqual([total, total, 4 * failing.length, 10 * total, 1]);
    expect(await count('SELECT sum(spans * sign) FROM traces')).toBe(total);
    expect(
      await count('SELECT count() FROM (SELECT trace_id FROM spans GROUP BY trace_id HAVING uniqExact(sampled) != 1)'),
    ).toBe(0);
    expect(await count('SELECT count() FROM analyst_traces WHERE sampled')).toBe(failing.length);
    await eventually(
      async () =>
        (await count(
          'SELECT count() FROM (SELECT span_id FROM span_texts UNION ALL SELECT span_id FROM span_texts_recent)',
        )) ===
        4 * failing.length,
      { what: 'texts of the traces that were kept' },
    );
    expect(fine.length).toBeGreaterThan(100);
  } finally {
    worker.kill('SIGKILL');
    await worker.exited;
    await log.close();
  }
});

it('a full tail buffer evicts its oldest traces', async () => {
  const log = await openTestLog(nats.url);
  const ids = Array.from({ length: 200 }, (_, i) => `full-${i}`)
    .filter((id) => !keptByRate(id, PROFILE_RATE.balanced))
    .slice(0, 30);
  const worker = spawn({ SERVICE_SAMPLING_BUFFER_SLOTS: '10' });
  const stored = async (): Promise<string[]> =>
    (await database.run("SELECT DISTINCT trace_id FROM spans WHERE trace_id LIKE 'full-%' ORDER BY log_seq, log_index"))
      .trim()
      .split('\n');
  try {
    await worker.ready;
    for (const id of ids) await log.publish([event(id, 0)], partitionOf);
    await eventually(async () => (await stored()).length === ids.length - 10, { what: 'all but ten' });
    expect(await stored()).toEqual(ids.slice(0, -10));
    await log.publish(
      ids.slice(-10).map((id) => event(id, 1, 'error')),
      partitionOf,
    );
    await eventually(
      async () => (await count("SELECT count() FROM spans WHERE sampled AND trace_id LIKE 'full-%'")) === 20,
      {
        what: 'the last ten kept',
      },
    );
  } finally {
    worker.kill('SIGKILL');
    await worker.exited;
    await log.close();
  }
});

it('sampled traces are counted for their organization alone and for the requested range', async () => {
  const data = async (query: string, headers: Record<string, string | undefined> = {}) =>
    (await call(api, 'GET', `/v1/sampling${query}`, { headers })).json?.['data'];
  expect(await data('')).toMatchObject({
    kept: await count('SELECT countIf(sampled) FROM spans'),
    summarised: await count('SELECT countIf(NOT sampled) FROM spans'),
  });
  const none = { kept: 0, summarised: 0, traces: { kept: 0, summarised: 0 } };
  expect(await data(`?since=${new Date(Date.now() + 3_600_000).toISOString()}`)).toMatchObject(none);
  expect(await data('?since=2020-01-01&until=2020-02-01')).toMatchObject({
    ...none,
    since: '2020-01-01T00:00:00.000Z',
  });
  expect((await call(api, 'GET', '/v1/sampling?since=yesterday')).json).toMatchObject({ code: 'invalid_request' });
  const other = await (await aTenant({ api })).keyOf('traces:read');
  expect(await data('', other)).toMatchObject(none);
});
