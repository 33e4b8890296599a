// Cancelled evals and dataset runs: real APIs, workers that are killed, the real engine, and an
// upstream of the test's own.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { JUDGING_STREAM } from '../../../schemas/streams.ts';
import { parseEval } from '../../../schemas/records/eval.ts';
import { CALLS_AT_ONCE, forkEvalWorker } from '../../support/evals.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { openTestStore, type TestStore } from '../../support/store.ts';
import { toldEvents } from '../../support/told.ts';
import { after, hang, score, startUpstream, type TestUpstream } from '../../support/upstream.ts';
import { eventually } from '../../support/wait.ts';
import { type Answer, call, startTestApi, type TestApi } from '../api/an_api.ts';
import { type EvalShown, landTraces, makeJudge, makeOrg, type TestOrg } from './an_eval.ts';

let nats: TestNats;
let store: TestStore;
let upstream: TestUpstream;
let api: TestApi;
let org: TestOrg;
const children: ChildProcess[] = [];

beforeAll(async () => {
  [nats, store, upstream] = await Promise.all([startTestNats(), openTestStore(), startUpstream()]);
  api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: store.database.url, llmUrl: upstream.url });
}, 60_000);

afterAll(async () => {
  await api.close();
  await upstream.close();
  await nats.remove();
  await store.close();
});

beforeEach(async () => {
  org = await makeOrg(api);
});

afterEach(async () => {
  for (const child of children.splice(0)) await kill(child);
  await api.log.jsm.streams.purge(JUDGING_STREAM);
});

async function startWorker(): Promise<ChildProcess> {
  const child = await forkEvalWorker({ natsUrl: nats.url, clickhouseUrl: store.database.url, llmUrl: upstream.url });
  children.push(child);
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}

const makeTraces = (count: number, response = 'ok'): Promise<string[]> =>
  landTraces(
    store,
    org.org,
    Array.from({ length: count }, () => ({ response })),
  );
const makeLlmJudge = (): Promise<string> =>
  makeJudge(org, {
    kind: 'llm',
    rule: undefined,
    model: 'm',
    prompt_template: 'Judge {{response}} of {{trace_id}}',
    rubric: { scale: [1, 5], criteria: ['good'] },
    threshold: { pass: 4, warn: 2 },
  });
const cancel = (eval_id: string, through = api): Promise<Answer> =>
  call(through, 'POST', `/v1/evals/${eval_id}/cancel`, { headers: org.headers, body: {} });
const shownIn = ({ json }: Answer): EvalShown => json?.['data'] as EvalShown;
const shown = (eval_id: string): Promise<EvalShown> => org.get<EvalShown>(`/v1/evals/${eval_id}`);
/** Returns whether the workers have released the eval and counted it. */
async function isSettled(eval_id: string): Promise<boolean> {
  const entry = await (await api.log.bucket('evals')).get(`${org.org}.${eval_id}`);
  return parseEval(entry?.string() ?? '').settled;
}
const settled = (eval_id: string): Promise<void> =>
  eventually(() => isSettled(eval_id), { what: 'the cancelled eval to be settled', withinMs: 60_000 });

test('cancelling a running eval keeps its scores so far, stops calls of models and stores no further score', async () => {
  upstream.behave(after(100, score(4)));
  const ids = await makeTraces(200);
  const { eval_id } = await org.post<EvalShown>('/v1/evals', {
    judge_id: await makeLlmJudge(),
    trace_ids: ids,
    async: true,
  });
  await startWorker();
  await eventually(async () => (await org.scores(eval_id)).length > 0, { what: 'the first scores', withinMs: 60_000 });
  upstream.behave(hang);
  await eventually(() => upstream.open === CALLS_AT_ONCE, { what: 'calls that hang' });

  const answer = await cancel(eval_id);
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  const cancelled = shownIn(answer);
  expect(cancelled).toMatchObject({ eval_id, status: 'cancelled', error: null });
  expect(Date.parse(cancelled.ended_at ?? '')).toBeGreaterThanOrEqual(Date.parse(cancelled.started_at));

  await eventually(() => upstream.open === 0, { what: 'the calls under way to be aborted' });
  const calls = upstream.requests.length;
  await settled(eval_id);
  const scores = await org.scores(eval_id);
  expect(scores.length).toBeGreaterThan(0);
  expect(scores.length).toBeLessThan(ids.length);
  expect(Math.max(...scores.map(({ scored_at }) => Date.parse(scored_at)))).toBeLessThanOrEqual(
    Date.parse(cancelled.ended_at ?? ''),
  );
  expect(await shown(eval_id)).toMatchObject({
    status: 'cancelled',
    ended_at: cancelled.ended_at,
    progress: { done: scores.length, total: ids.length },
    stats: { total: scores.length, passed: scores.length, mean_score: 4 },
  });
  // The queue holds no chunk of the eval, so no worker can call a model for it.
  await eventually(async () => (await api.log.jsm.streams.info(JUDGING_STREAM)).state.messages === 0, {
    what: 'an empty queue',
  });
  expect(upstream.requests.length).toBe(calls);
  expect(await org.get<EvalShown[]>('/v1/evals?status=cancelled')).toMatchObject([{ eval_id }]);
});

test('cancelling twice answers the same, and an eval that has ended is 409 conflict', async () => {
  const judge_id = await makeJudge(org);
  const ids = await makeTraces(3);
  const waiting = await org.post<EvalShown>('/v1/evals', { judge_id, trace_ids: ids, async: true });
  const first = await cancel(waiting.eval_id);
  expect([first.status, shownIn(first).status]).toEqual([200, 'cancelled']);
  // Another API process accepts the cancellation too.
  const other = await startTestApi({ natsUrl: nats.url, clickhouseUrl: store.database.url, llmUrl: upstream.url });
  try {
    const again = await cancel(waiting.eval_id, other);
    expect([again.status, shownIn(again)]).toEqual([200, shownIn(first)]);
  } finally {
    await other.close();
  }

  await startWorker();
  const { eval_id } = await org.post<EvalShown>('/v1/evals', { judge_id, trace_ids: ids, async: true });
  expect(await org.ended(eval_id)).toMatchObject({ status: 'complete', stats: { total: 3 } });
  const late = await cancel(eval_id);
  expect([late.status, late.json?.['code']]).toEqual([409, 'conflict']);
  expect(late.json?.['detail']).toContain('complete');
  expect(await shown(eval_id)).toMatchObject({ status: 'complete' });
  const unknown = await cancel('eval_0000000000000000');
  expect([unknown.status, unknown.json?.['code']]).toEqual([404, 'eval_not_found']);
  const stranger = await makeOrg(api);
  expect((await call(api, 'POST', `/v1/evals/${eval_id}/cancel`, { headers: stranger.headers, body: {} })).status).toBe(
    404,
  );
});

test('a request that waits for its eval is answered when the eval is cancelled', async () => {
  const judge_id = await makeJudge(org);
  const waits = org.post<EvalShown>('/v1/evals', { judge_id, trace_ids: await makeTraces(2) });
  let eval_id = '';
  await eventually(
    async () => {
      eval_id = (await org.get<EvalShown[]>('/v1/evals'))[0]?.eval_id ?? '';
      return eval_id !== '';
    },
    { what: 'the eval' },
  );
  expect((await cancel(eval_id)).status).toBe(200);
  expect(await waits).toMatchObject({ eval_id, status: 'cancelled' });
});

test('an eval cancelled while its worker is dead stays cancelled, and the next worker calls no model for it', async () => {
  upstream.behave(hang);
  const ids = await makeTraces(100);
  const { eval_id } = await org.post<EvalShown>('/v1/evals', {
    judge_id: await makeLlmJudge(),
    trace_ids: ids,
    async: true,
  });
  const worker = await startWorker();
  await eventually(() => upstream.open === CALLS_AT_ONCE, { what: 'calls under way', withinMs: 60_000 });
  await kill(worker);
  expect((await cancel(eval_id)).status).toBe(200);
  const calls = upstream.requests.length;
  await startWorker();
  await settled(eval_id);
  expect(await shown(eval_id)).toMatchObject({
    status: 'cancelled',
    stats: { total: 0 },
    progress: { done: 0, total: 100 },
  });
  expect(upstream.requests.length).toBe(calls);
  // Data that only a running eval needs is deleted.
  const parts: string[] = [];
  for await (const key of await (await api.log.bucket('eval_chunks')).keys(`${org.org}.>`)) parts.push(key);
  expect(parts).toEqual([]);
});

test('a cancelled eval sends no judge.regression and is no baseline for one', async () => {
  const judge_id = await makeJudge(org);
  const [good, bad] = [await makeTraces(4, 'ok'), await makeTraces(4, 'no')];
  const worker = await startWorker();
  const run = async (trace_ids: string[]): Promise<EvalShown> =>
    org.ended((await org.post<EvalShown>('/v1/evals', { judge_id, trace_ids, async: true })).eval_id);
  expect(await run(good)).toMatchObject({ stats: { mean_score: 1 } });
  await kill(worker);
  // All traces of this eval fail, so its mean would be lower by 1.
  const { eval_id } = await org.post<EvalShown>('/v1/evals', { judge_id, trace_ids: bad, async: true });
  expect((await cancel(eval_id)).status).toBe(200);
  await startWorker();
  await settled(eval_id);
  const regressions = async () =>
    (await toldEvents(api.log, org.org)).filter(({ event }) => event === 'judge.regression');
  expect(await regressions()).toEqual([]);
  // The mean drops relative to the last complete eval, which precedes the cancelled one.
  await run(bad);
  await eventually(async () => (await regressions()).length === 1, { what: 'the regression' });
  expect(JSON.parse((await regressions())[0]?.payload ?? '{}')).toMatchObject({ previous_mean: 1, current_mean: 0 });
});

test('a dataset run is cancelled in the same way as an eval', async () => {
  upstream.behave(hang);
  const items = Array.from({ length: 40 }, (_, i) => ({ input: { question: String(i) } }));
  const { dataset_id } = await org.post<{ dataset_id: string }>(
    '/v1/datasets',
    { name: 'd', version: '1', items },
    201,
  );
  const run = { judge_id: await makeJudge(org), model: 'm', async: true };
  const { eval_id } = await org.post<EvalShown>(`/v1/datasets/${dataset_id}/run`, run);
  await startWorker();
  await eventually(() => upstream.open === CALLS_AT_ONCE, { what: 'calls under way', withinMs: 60_000 });
  expect((await cancel(eval_id)).status).toBe(200);
  await eventually(() => upstream.open === 0, { what: 'the calls to be aborted' });
  await settled(eval_id);
  expect(await shown(eval_id)).toMatchObject({ status: 'cancelled', dataset_id, stats: { total: 0 } });
});
