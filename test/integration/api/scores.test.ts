// Scores over HTTP: a score that a client gives to a trace or a span is listed beside the scores of
// judges, survives a ClickHouse outage, and is stored once.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClickHouse } from '../../../sql/client/client.ts';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { startWorker, type TestWorker } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';
import { type Answer, call, INGEST, startTestApi, type TestApi } from './an_api.ts';

let nats: TestNats;
let database: TestDatabase;
let worker: TestWorker;
let api: TestApi;

beforeAll(async () => {
  nats = await startTestNats();
  database = await createTestDatabase();
  const options = { natsUrl: nats.url, clickhouseUrl: database.url };
  api = await startTestApi(options);
  worker = startWorker(options);
  await worker.ready;
});

afterAll(async () => {
  worker.kill('SIGTERM');
  await worker.exited;
  await api.close();
  await database.drop();
  await nats.remove();
});

let serial = 0;
/**
 * Sends a trace of one span. Resolves once the API has acknowledged it, which may be before the
 * trace can be read.
 */
async function sent(): Promise<{ trace_id: string; span_id: string }> {
  const trace_id = `scored-${++serial}`;
  const event = { name: 'step', outcome: 'success', duration_ms: 1, trace_id, span_id: `${trace_id}-root` };
  expect((await call(api, 'POST', `${INGEST}/custom`, { body: { events: [event] } })).status).toBe(200);
  return { trace_id, span_id: event.span_id };
}
const give = (body: unknown): Promise<Answer> => call(api, 'POST', '/v1/scores', { body });
const list = (trace_id: string, more = ''): Promise<Answer> =>
  call(api, 'GET', `/v1/scores?trace_id=${trace_id}${more}`);
const scoresOf = (answer: Answer) => answer.json?.['data'] as Record<string, unknown>[];

describe('a score', () => {
  test('a score of a trace that was just sent waits for it, also where another organization has a trace with this id', async () => {
    await database.run(
      `INSERT INTO trace_lookup (trace_key, org_id, first_at, last_at) SELECT sipHash64('scored-${serial + 1}'), 'org_other', now64(3), now64(3)`,
    );
    const { trace_id } = await sent();
    const given = await give({ trace_id, name: 'shared', value: 1 });
    expect([given.status, given.json?.['code']]).toEqual([201, undefined]);
  });

  test.each([
    ['a number', 4.5, 'numeric'],
    ['a number below zero', -1, 'numeric'],
    ['true', true, 'boolean'],
    ['false', false, 'boolean'],
    ['a category', 'off topic', 'categorical'],
  ])('a score of %s is read back as given', async (_, value, data_type) => {
    const { trace_id } = await sent();
    const given = await give({ trace_id, name: 'helpful', value, comment: 'said “so” by Zoë' });
    expect(given.status).toBe(201);
    const score = given.json?.['data'] as Record<string, unknown>;
    expect(score).toMatchObject({
      trace_id,
      span_id: null,
      name: 'helpful',
      value,
      data_type,
      comment: 'said “so” by Zoë',
      source: 'user',
    });
    expect(score['score_id']).toMatch(/^score_[0-9a-f]{32}$/);
    await eventually(async () => scoresOf(await list(trace_id)).length === 1);
    expect(scoresOf(await list(trace_id))).toEqual([score]);
  });

  test('a score without a comment has none, in its answer and in the list', async () => {
    const { trace_id } = await sent();
    const score = (await give({ trace_id, name: 'helpful', value: true, comment: '' })).json?.['data'] as Record<
      string,
      unknown
    >;
    expect(score['comment']).toBeNull();
    await eventually(async () => scoresOf(await list(trace_id)).length === 1);
    expect(scoresOf(await list(trace_id))).toEqual([score]);
  });

  test('a score of a span names it', async () => {
    const { trace_id, span_id } = await sent();
    expect((await give({ trace_id, span_id, name: 'stars', value: 3 })).status).toBe(201);
    await eventually(async () => scoresOf(await list(trace_id))[0]?.['span_id'] === span_id);
    const row = await database.run(
      `SELECT span_id, name, number, category FROM analyst_feedback WHERE trace_id = '${trace_id}' FORMAT JSONCompactEachRow`,
    );
    expect(JSON.parse(row)).toEqual([span_id, 'stars', 3, '']);
  });

  test("a user's score is listed with the scores of judges, and apart from them on request", async () => {
    const { trace_id } = await sent();
    expect((await give({ trace_id, name: 'stars', value: 3 })).status).toBe(201);
    const client = createClickHouse({ url: database.url });
    await client.execute({
      name: 'a_judge_score',
      sql: `INSERT INTO judge_scores (org_id, judge_id, eval_id, trace_id, judge_version, judge_name, started_at, score, verdict, reason, scored_at)
        VALUES ('org_test', 'judge_1', '', '${trace_id}', 2, 'polite', now64(3), 1, 'pass', 'found nothing', now64(3))`,
      timeoutMs: 10_000,
    });
    await client.close();
    await eventually(async () => scoresOf(await list(trace_id)).length === 2);
    const both = await list(trace_id);
    expect(both.json?.['meta']).toMatchObject({ total: 2, page: 1, per_page: 50, has_more: false });
    const judged = scoresOf(both).find(({ source }) => source === 'judge');
    expect(judged).toMatchObject({
      score_id: null,
      name: 'polite',
      value: 1,
      verdict: 'pass',
      judge_version: 2,
      eval_id: null,
      comment: 'found nothing',
      author: { type: 'judge', id: 'judge_1' },
    });
    expect(scoresOf(await list(trace_id, '&source=user')).map(({ source }) => source)).toEqual(['user']);
    expect(scoresOf(await list(trace_id, '&source=judge')).map(({ source }) => source)).toEqual(['judge']);
    expect(scoresOf(await list(trace_id, '&limit=1&offset=1'))).toHaveLength(1);
  });

  test('a score with an Idempotency-Key is stored once, however often it is sent', async () => {
    const { trace_id } = await sent();
    const headers = { 'idempotency-key': '5d3c6a52-6d1c-4e6f-9d7a-7a5a2f6c1b11' };
    const first = await call(api, 'POST', '/v1/scores', { body: { trace_id, name: 'stars', value: 5 }, headers });
    const again = await call(api, 'POST', '/v1/scores', { body: { trace_id, name: 'stars', value: 5 }, headers });
    expect([first.status, again.status]).toEqual([201, 201]);
    expect(again.json).toEqual(first.json);
    const { trace_id: other } = await sent();
    expect((await give({ trace_id: other, name: 'stars', value: 5 })).status).toBe(201);
    // The later score is visible, so every earlier score is visible too.
    await eventually(async () => scoresOf(await list(other)).length === 1);
    expect(scoresOf(await list(trace_id))).toHaveLength(1);
  });

  test('a score of a trace that has not arrived is accepted as pending, and nothing lists it', async () => {
    const answer = await give({ trace_id: 'no-such-trace', name: 'stars', value: 5 });
    expect([answer.status, answer.json?.['data']]).toMatchObject([201, { trace_id: 'no-such-trace', pending: true }]);
    expect((await list('no-such-trace')).status).toBe(404);
  });

  test.each([
    ['value', { trace_id: 't', name: 'stars', value: null }],
    ['value', { trace_id: 't', name: 'stars', value: '' }],
    ['value', { trace_id: 't', name: 'stars' }],
    ['name', { trace_id: 't', name: ' ', value: 1 }],
    ['trace_id', { trace_id: 'not an id', name: 'stars', value: 1 }],
    ['trace_id', { name: 'stars', value: 1 }],
    ['comment', { trace_id: 't', name: 'stars', value: 1, comment: 'x'.repeat(10_001) }],
  ])('a score with a bad %s is rejected naming the field', async (field, body) => {
    const answer = await give(body);
    expect([answer.status, answer.json?.['code']]).toEqual([422, 'invalid_request']);
    expect(answer.json?.['detail']).toContain(field);
  });

  test('a score of a span that the trace does not have is rejected', async () => {
    const { trace_id } = await sent();
    const answer = await give({ trace_id, span_id: 'spn_other', name: 'stars', value: 1 });
    expect(answer.status).toBe(422);
    expect(answer.json?.['detail']).toContain('span_id');
  });

  test('a score is stored while no worker runs, and lands when one does', async () => {
    const { trace_id } = await sent();
    await eventually(async () => (await list(trace_id)).status === 200);
    worker.kill('SIGKILL');
    await worker.exited;
    expect((await give({ trace_id, name: 'stars', value: 2 })).status).toBe(201);
    worker = startWorker({ natsUrl: nats.url, clickhouseUrl: database.url });
    await worker.ready;
    await eventually(async () => scoresOf(await list(trace_id)).length === 1);
  });
});

test('the lists of sessions and end users show what was sent', async () => {
  const events = ['a', 'b'].map((n) => ({
    name: 'step',
    outcome: n === 'a' ? 'success' : 'error',
    duration_ms: 5,
    trace_id: `session-trace-${n}`,
    attributes: { session_id: 'chat 1', user_id: 'ann@example.com', cost_usd: 0.25 },
  }));
  expect((await call(api, 'POST', `${INGEST}/custom`, { body: { events } })).status).toBe(200);
  const sums = { traces: 2, failed_traces: 1, spans: 2, cost_usd: 0.5, input_tokens: 0, output_tokens: 0 };
  await eventually(async () => {
    const sessions = await call(api, 'GET', '/v1/sessions?session_id=chat%201');
    return (scoresOf(sessions)[0]?.['traces'] ?? 0) === 2;
  });
  expect(scoresOf(await call(api, 'GET', '/v1/sessions?session_id=chat%201'))).toMatchObject([
    { session_id: 'chat 1', ...sums },
  ]);
  expect(scoresOf(await call(api, 'GET', '/v1/users?user_id=ann%40example.com'))).toMatchObject([
    { user_id: 'ann@example.com', ...sums },
  ]);
  const traces = await call(api, 'GET', '/v1/traces?user_id=ann%40example.com&session_id=chat%201');
  expect(scoresOf(traces)).toHaveLength(2);
});

test("the organization's redaction applies to scores too", async () => {
  const policy = '/orgs/org_test/pii-policy';
  expect((await call(api, 'PUT', policy, { body: { enabled: true, kinds: ['email'] } })).status).toBe(200);
  const { trace_id } = await sent();
  const written = { name: 'by ann@example.com', value: 'as ann@example.com said', comment: 'ask ann@example.com' };
  // The worker learns of the policy within a second.
  await eventually(async () => {
    expect((await give({ trace_id, ...written })).status).toBe(201);
    return scoresOf(await list(trace_id)).some(({ comment }) => comment === 'ask [EMAIL]');
  });
  expect(scoresOf(await list(trace_id))[0]).toMatchObject({
    name: 'by [EMAIL]',
    value: 'as [EMAIL] said',
    comment: 'ask [EMAIL]',
  });
  expect((await call(api, 'PUT', policy, { body: { enabled: null } })).status).toBe(200);
});
