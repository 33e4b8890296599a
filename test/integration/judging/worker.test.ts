// LLM judging in real workers: a complete trace is judged, its call lands as a span with its cost,
// and no judge judges that span. A failing upstream delays neither landing nor completion.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { partitionOf } from '../../../pipeline/domain/traces/ids.ts';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { aJudge, putJudge } from '../../support/judging.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { logged, openTestLog, PARTITIONS, startWorker, type TestLog, type TestWorker } from '../../support/pipeline.ts';
import { fail, score, startUpstream, type TestUpstream } from '../../support/upstream.ts';
import { toldEvents } from '../../support/told.ts';
import { eventually } from '../../support/wait.ts';

const ORG = 'org_a';

let database: TestDatabase;
let nats: TestNats;
let upstream: TestUpstream;
let log: TestLog;
let worker: TestWorker;

beforeAll(async () => {
  [database, nats, upstream] = await Promise.all([createTestDatabase(), startTestNats(), startUpstream()]);
  log = await openTestLog(nats.url);
  await putJudge(log.log, aJudge({ org_id: ORG, judge_id: 'judge_live' }));
  const more = { SERVICE_LLM_BASE_URL: upstream.url, SERVICE_LLM_API_KEY: 'sk-worker', SERVICE_TRACE_GRACE_MS: '50' };
  worker = startWorker({ natsUrl: nats.url, clickhouseUrl: database.url, more });
  await worker.ready;
}, 90_000);
afterAll(async () => {
  worker.kill('SIGKILL');
  await worker.exited;
  await log.close();
  await upstream.close();
  await nats.remove();
  await database.drop();
});

async function send(trace_id: string): Promise<void> {
  const event = logged('chatcompletion', {
    trace_id,
    request: { model: 'gpt-4o', messages: [{ role: 'user', content: `the question of ${trace_id}` }] },
    response: {
      choices: [{ message: { role: 'assistant', content: 'the answer' } }],
      usage: { prompt_tokens: 5, completion_tokens: 2 },
    },
    outcome: 'success',
    duration_ms: 10,
  });
  await log.publish([event], ({ org_id }) => partitionOf(org_id, trace_id, PARTITIONS));
}

const completed = async (): Promise<string[]> =>
  (await toldEvents(log.log, ORG))
    .filter(({ event }) => event === 'trace.completed')
    .map(({ payload }) => (JSON.parse(payload) as { trace_id: string }).trace_id);

it('a completed trace is judged once, and the call is a span that costs and that no judge judges', async () => {
  upstream.behave(score(4));
  await send('trc_whole');
  await eventually(
    async () =>
      (await database.run("SELECT count() FROM judge_scores WHERE trace_id = 'trc_whole' AND score = 4")) === '1\n',
  );
  const span = `SELECT trace_id, model, input_tokens, output_tokens, cost_usd > 0, JSONExtractString(attributes, 'judged_trace_id') FROM spans
    WHERE JSONExtractBool(attributes, 'judge_call') FORMAT TSV`;
  await eventually(async () => (await database.run(span)) !== '');
  const rows = (await database.run(span)).trimEnd().split('\n');
  expect(rows).toHaveLength(1);
  const [trace_id = '', ...rest] = rows[0]?.split('\t') ?? [];
  expect(rest).toEqual(['gpt-4o-mini', '100', '20', '1', 'trc_whole']);
  // The trace of the call completes like any other, and no judge judges it.
  await eventually(async () => (await completed()).includes(trace_id), { what: 'the end of the trace of the call' });
  await send('trc_next');
  await eventually(
    async () => (await database.run("SELECT count() FROM judge_scores WHERE trace_id = 'trc_next'")) === '1\n',
  );
  expect(
    upstream.requests.map(({ body }) => /the question of (\w+)/.exec(body.messages.at(-1)?.content ?? '')?.[1]),
  ).toEqual(['trc_whole', 'trc_next']);
});

it('while the upstream fails traces land and complete; they are judged when it is back', async () => {
  upstream.behave(fail(503));
  const ids = Array.from({ length: 10 }, (_, index) => `trc_down_${index}`);
  for (const id of ids) await send(id);
  await eventually(async () => new Set(await completed()).isSupersetOf(new Set(ids)), {
    what: 'the end of all traces',
  });
  expect(await database.run("SELECT count() FROM judge_scores WHERE startsWith(trace_id, 'trc_down')")).toBe('0\n');
  upstream.behave(score(2));
  await eventually(
    async () =>
      (await database.run("SELECT uniqExact(trace_id) FROM judge_scores WHERE startsWith(trace_id, 'trc_down')")) ===
      '10\n',
  );
});
