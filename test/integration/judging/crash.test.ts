// No trace is scored twice: workers are stopped or killed during a slow call, and the queue holds
// an unreadable message.
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { DEAD_LETTERS_STREAM, judgingSubject } from '../../../schemas/streams.ts';
import {
  aJudge,
  forkJudging,
  loggedCalls,
  openJudgingLog,
  putJudge,
  putTask,
  startTestJudging,
  tasksLeft,
} from '../../support/judging.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, type TestStore } from '../../support/store.ts';
import { hang, score, startUpstream, type TestUpstream } from '../../support/upstream.ts';
import { eventually } from '../../support/wait.ts';

let nats: TestNats;
let store: TestStore;
let upstream: TestUpstream;
let log: Log;

beforeAll(async () => {
  [nats, store, upstream] = await Promise.all([startTestNats(), openTestStore(), startUpstream()]);
  log = await openJudgingLog(nats.url);
});
afterAll(async () => {
  await log.nc.close();
  await upstream.close();
  await store.close();
  await nats.remove();
});

const scores = (org: string) =>
  store.database.run(
    `SELECT trace_id, score FROM judge_scores FINAL WHERE org_id = '${org}' ORDER BY trace_id FORMAT TSV`,
  );
const done = () => eventually(async () => (await tasksLeft(log)) === 0, { what: 'the end of all tasks' });

async function land(org_id: string, ...trace_ids: string[]): Promise<void> {
  await store.landSpans(
    trace_ids.map((trace_id) => aSpan({ org_id, trace_id, started_at: Date.now(), ended_at: Date.now() })),
  );
}

it('when a worker is killed in the middle of a slow call another one judges, with one row and one span', async () => {
  upstream.behave(hang);
  const judge = await putJudge(log, aJudge({ org_id: 'org_kill' }));
  await land('org_kill', 'trc_kill');
  const first = await forkJudging(nats.url, store.database.url, upstream.url);
  await putTask(log, judge, 'trc_kill');
  await eventually(() => upstream.requests.length === 1);
  const killed = new Promise((resolve) => first.once('exit', resolve));
  first.kill('SIGKILL');
  await killed;
  upstream.behave(score(4));
  const second = await forkJudging(nats.url, store.database.url, upstream.url);
  await done();
  expect(upstream.requests).toHaveLength(2);
  expect(await scores('org_kill')).toBe('trc_kill\t4\n');
  expect(await loggedCalls(log, 'org_kill')).toHaveLength(1);
  second.kill('SIGKILL');
});

it('when workers are killed repeatedly every trace has one row and one span', async () => {
  const judge = await putJudge(log, aJudge({ org_id: 'org_again' }));
  const ids = Array.from({ length: 24 }, (_, index) => `trc_again_${String(index).padStart(2, '0')}`);
  await land('org_again', ...ids);
  upstream.requests.length = 0;
  upstream.behave(score(5));
  await Promise.all(ids.map((id) => putTask(log, judge, id)));
  for (const calls of [4, 14]) {
    const worker = await forkJudging(nats.url, store.database.url, upstream.url);
    const killed = new Promise((resolve) => worker.once('exit', resolve));
    await eventually(() => upstream.requests.length >= calls);
    worker.kill('SIGKILL');
    await killed;
  }
  const last = await startTestJudging({
    natsUrl: nats.url,
    clickhouseUrl: store.database.url,
    upstreamUrl: upstream.url,
  });
  await done();
  expect(await scores('org_again')).toBe(ids.map((id) => `${id}\t5\n`).join(''));
  const recorded = (await loggedCalls(log, 'org_again')).map(({ event }) =>
    String(event.attributes['judged_trace_id']),
  );
  expect(recorded.toSorted()).toEqual(ids);
  await last.stop();
});

it('a worker that shuts down aborts its calls in flight, and another one continues', async () => {
  upstream.requests.length = 0;
  upstream.behave(hang);
  const judge = await putJudge(log, aJudge({ org_id: 'org_stop' }));
  await land('org_stop', 'trc_stop');
  const first = await startTestJudging({
    natsUrl: nats.url,
    clickhouseUrl: store.database.url,
    upstreamUrl: upstream.url,
  });
  await putTask(log, judge, 'trc_stop');
  await eventually(() => upstream.requests.length === 1);
  await first.stop();
  upstream.behave(score(2));
  const second = await startTestJudging({
    natsUrl: nats.url,
    clickhouseUrl: store.database.url,
    upstreamUrl: upstream.url,
  });
  await done();
  expect(await scores('org_stop')).toBe('trc_stop\t2\n');
  await second.stop();
});

it('an unreadable message is dead-lettered and delays no other', async () => {
  const worker = await startTestJudging({
    natsUrl: nats.url,
    clickhouseUrl: store.database.url,
    upstreamUrl: upstream.url,
  });
  await log.js.publish(judgingSubject('live'), new Uint8Array([1, 2, 3]));
  await done();
  const letter = await log.jsm.streams.getMessage(DEAD_LETTERS_STREAM, { last_by_subj: 'dead.judging_live' });
  expect(letter).not.toBeNull();
  await worker.stop();
});
