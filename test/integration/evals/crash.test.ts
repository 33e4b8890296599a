// Eval workers that are killed while they run: the next worker continues the eval and scores no
// trace twice.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { JUDGING_STREAM } from '../../../schemas/streams.ts';
import { CALLS_AT_ONCE, forkEvalWorker } from '../../support/evals.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { openTestStore, type TestStore } from '../../support/store.ts';
import { after, score, startUpstream, type TestUpstream } from '../../support/upstream.ts';
import { eventually } from '../../support/wait.ts';
import { startTestApi, type TestApi } from '../api/an_api.ts';
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
});

afterAll(async () => {
  for (const child of children) await kill(child);
  await api.close();
  await upstream.close();
  await nats.remove();
  await store.close();
});

beforeEach(async () => {
  org = await makeOrg(api);
});

async function start(): Promise<ChildProcess> {
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
const doneOf = async (eval_id: string): Promise<number> =>
  (await org.get<EvalShown>(`/v1/evals/${eval_id}`)).progress.done;
/**
 * Returns the number of stored rows and of distinct traces: a trace that was scored twice would
 * have two rows.
 */
const rowsOf = async (eval_id: string): Promise<string[]> =>
  (await store.database.run(`SELECT count(), uniqExact(trace_id) FROM judge_scores WHERE eval_id = '${eval_id}'`))
    .trim()
    .split('\t');

test('an eval whose worker is killed repeatedly scores every trace once and ends', async () => {
  const total = 2000;
  const ids = await landTraces(
    store,
    org.org,
    Array.from({ length: total }, (_, i) => ({ response: i % 4 === 0 ? 'ok' : 'no' })),
  );
  const { eval_id } = await org.post<EvalShown>('/v1/evals', {
    judge_id: await makeJudge(org),
    trace_ids: ids,
    async: true,
  });
  for (const progress of [1, 600]) {
    const child = await start();
    await eventually(async () => (await doneOf(eval_id)) >= progress, { what: 'some progress' });
    await kill(child);
  }
  expect((await org.get<EvalShown>(`/v1/evals/${eval_id}`)).status).toBe('running');
  const last = await start();
  expect(await org.ended(eval_id)).toMatchObject({
    status: 'complete',
    progress: { done: total, total },
    stats: { total, passed: total / 4, failed: (total * 3) / 4, errors: 0, mean_score: 0.25, p50_score: 0 },
  });
  expect(await rowsOf(eval_id)).toEqual([String(total), String(total)]);
  await kill(last);
});

test("a model's answered calls are not repeated", async () => {
  const total = 40;
  upstream.behave(after(150, score(4)));
  const before = upstream.requests.length;
  const ids = await landTraces(
    store,
    org.org,
    Array.from({ length: total }, () => ({ response: 'fine' })),
  );
  const judge_id = await makeJudge(org, {
    kind: 'llm',
    rule: undefined,
    model: 'm',
    prompt_template: 'Judge {{response}} of {{trace_id}}',
    rubric: { scale: [1, 5], criteria: ['good'] },
    threshold: { pass: 4, warn: 2 },
  });
  const { eval_id } = await org.post<EvalShown>('/v1/evals', { judge_id, trace_ids: ids, async: true });
  const first = await start();
  await eventually(() => upstream.requests.length - before >= 10 && upstream.open > 0, { what: 'calls under way' });
  await kill(first);
  const second = await start();
  expect(await org.ended(eval_id)).toMatchObject({
    status: 'complete',
    stats: { total, passed: total, errors: 0, mean_score: 4, p50_score: 4 },
  });
  expect(await rowsOf(eval_id)).toEqual([String(total), String(total)]);
  expect(upstream.requests.length - before).toBeLessThanOrEqual(total + CALLS_AT_ONCE);
  await kill(second);
});

test('chunks with lost messages are queued again', async () => {
  const ids = await landTraces(
    store,
    org.org,
    Array.from({ length: 250 }, () => ({ response: 'ok' })),
  );
  const { eval_id } = await org.post<EvalShown>('/v1/evals', {
    judge_id: await makeJudge(org),
    trace_ids: ids,
    async: true,
  });
  await api.log.jsm.streams.purge(JUDGING_STREAM);
  const child = await start();
  expect(await org.ended(eval_id)).toMatchObject({ status: 'complete', stats: { total: 250, passed: 250 } });
  await kill(child);
});
