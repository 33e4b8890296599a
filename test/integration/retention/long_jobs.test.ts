// Long jobs on real NATS: one worker at a time runs a job, and the job ends even when workers are
// killed, paused or stopped.
import { type ChildProcess, fork } from 'node:child_process';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { JobRecords } from '../../../ops/exchange/job_records.ts';
import { createLogger } from '../../../ops/platform/logger.ts';
import { connectNats } from '../../../ops/platform/nats/connect.ts';
import { ObjectStoreError } from '../../../ops/platform/object_store/object_store.ts';
import { type Log, openLog } from '../../../ops/platform/nats/open_log.ts';
import { type LongJobContext, type LongJobHandler, LongJobRunner } from '../../../pipeline/jobs/long_jobs.ts';
import { type LongJob, newLongJob } from '../../../schemas/records/job_record.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';

/**
 * Speeds up the timings: a worker's claim on a job expires after 2.4 s of silence instead of 12.
 */
const HURRY = 5;
let nats: TestNats;
let log: Log;
let records: JobRecords;
const runners: LongJobRunner[] = [];
const children: ChildProcess[] = [];

beforeAll(async () => {
  nats = await startTestNats();
});
afterAll(() => nats.remove());
beforeEach(async () => {
  log = await openLog(await connectNats({ url: nats.url, name: 'test', waitMs: 5000 }), {
    replicas: 1,
    logBytesMax: 64 * 1024 * 1024,
  });
  records = await JobRecords.open(log, () => undefined);
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  for (const runner of runners.splice(0)) await runner.stop();
  records.close();
  const kv = await log.bucket('job_records');
  for await (const key of await kv.keys()) await kv.purge(key);
  await log.nc.close();
});

function aRunner(workerId: string, handler: LongJobHandler, kind = 'work'): LongJobRunner {
  const options = {
    records,
    handlers: { [kind]: handler },
    workerId,
    log: createLogger('test', 'silent'),
    observe: () => undefined,
  };
  const runner = new LongJobRunner({ ...options, now: () => Date.now(), hurry: HURRY });
  runner.start();
  runners.push(runner);
  return runner;
}
let made = 0;
async function ask(over: Partial<LongJob> = {}): Promise<LongJob> {
  made += 1;
  const job = {
    job_id: `job_${made.toString(16).padStart(16, '0')}`,
    org_id: 'org.a',
    kind: 'work',
    args: { n: made },
    created_at: new Date(Date.now() + made).toISOString(),
  };
  const asked = { ...newLongJob(job), ...over };
  await records.create(asked);
  return asked;
}
const stateOf = ({ job_id }: LongJob): LongJob | undefined => records.all().find((job) => job.job_id === job_id);
const ends = (job: LongJob): Promise<void> =>
  eventually(() => ['complete', 'failed'].includes(stateOf(job)?.status ?? ''), {
    withinMs: 60_000,
    what: 'the end of a job',
  });

it('a long job is carried out once by one of the workers, with its progress and result in the record', async () => {
  const seen: unknown[] = [];
  const gate = Promise.withResolvers<undefined>();
  const handler = async ({ args, progress }: LongJobContext): Promise<Record<string, unknown>> => {
    seen.push(args);
    progress(2, 7);
    await gate.promise;
    return { texts: 3 };
  };
  for (const worker of ['w1', 'w2', 'w3']) aRunner(worker, handler);
  const job = await ask();
  await eventually(() => stateOf(job)?.progress.done === 2);
  expect(stateOf(job)).toMatchObject({ status: 'running', progress: { done: 2, total: 7 }, ended_at: null, tries: 1 });
  gate.resolve(undefined);
  await ends(job);
  expect(stateOf(job)).toMatchObject({ status: 'complete', result: { texts: 3 }, error: null, holder: '' });
  expect(seen).toEqual([job.args]);
});

it("an organization's long jobs run one at a time, the oldest first", async () => {
  const order: unknown[] = [];
  let running = 0;
  let most = 0;
  const jobs = [await ask(), await ask(), await ask()];
  const handler = async ({ args }: LongJobContext): Promise<Record<string, unknown>> => {
    running += 1;
    most = Math.max(most, running);
    order.push((args as { n: number }).n);
    await new Promise((resolve) => setTimeout(resolve, 20));
    running -= 1;
    return {};
  };
  for (const worker of ['w1', 'w2']) aRunner(worker, handler);
  for (const job of jobs) await ends(job);
  expect(most).toBe(1);
  expect(order).toEqual(order.toSorted());
});

it('a failed long job says why; a store that is away briefly fails none', async () => {
  let tries = 0;
  aRunner('w1', ({ args }) => {
    if ((args as { away?: boolean }).away !== true) throw new Error('the object a/b is corrupt\nat line 3');
    tries += 1;
    if (tries < 3) throw new ObjectStoreError('unavailable', 'nobody is there');
    return Promise.resolve({ tries });
  });
  const [bad, away] = [await ask(), await ask({ args: { away: true } })];
  await ends(bad);
  await ends(away);
  expect(stateOf(bad)).toMatchObject({ status: 'failed', error: 'the object a/b is corrupt', result: null });
  expect(stateOf(away)).toMatchObject({ status: 'complete', result: { tries: 3 } });
});

async function aWorkerProcess(): Promise<{ child: ChildProcess; said: string[] }> {
  const child = fork(new URL('../../support/long_job_worker.ts', import.meta.url), [nats.url, 'child', String(HURRY)]);
  children.push(child);
  const said: string[] = [];
  child.on('message', (word) => {
    if (typeof word === 'string') said.push(word);
  });
  await eventually(() => said.includes('ready'));
  return { child, said };
}

it('a long job whose worker is killed is begun again by another', async () => {
  const { child, said } = await aWorkerProcess();
  const job = await ask({ kind: 'endless' });
  await eventually(() => said.includes(`began ${job.job_id}`) && stateOf(job)?.status === 'running');
  child.kill('SIGKILL');
  aRunner('w2', () => Promise.resolve({ by: 'w2' }), 'endless');
  await ends(job);
  expect(stateOf(job)).toMatchObject({ status: 'complete', result: { by: 'w2' }, tries: 2 });
});

it('a long job whose worker was paused for too long continues elsewhere, and not there when it wakes', async () => {
  const { child, said } = await aWorkerProcess();
  const job = await ask({ kind: 'endless' });
  await eventually(() => said.includes(`began ${job.job_id}`) && stateOf(job)?.status === 'running');
  child.kill('SIGSTOP');
  aRunner('w2', () => Promise.resolve({ by: 'w2' }), 'endless');
  await ends(job);
  child.kill('SIGCONT');
  await eventually(() => said.includes('stopped'));
  expect(stateOf(job)).toMatchObject({ status: 'complete', result: { by: 'w2' } });
});

it('a long job that was begun too often is given up; one whose worker shuts down is returned', async () => {
  const poison = await ask({ status: 'running', holder: 'gone', tries: 5 });
  const held = await ask({ org_id: 'org_b' });
  const first = aRunner(
    'w1',
    ({ signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          reject(signal.reason as Error);
        });
      }),
  );
  await eventually(() => stateOf(held)?.status === 'running');
  await ends(poison);
  expect(stateOf(poison)).toMatchObject({
    status: 'failed',
    error: expect.stringContaining('its worker died each time') as string,
  });
  await first.stop();
  expect(stateOf(held)).toMatchObject({ status: 'queued', holder: '', tries: 0 });
  aRunner('w2', () => Promise.resolve({ by: 'w2' }));
  await ends(held);
  expect(stateOf(held)).toMatchObject({ status: 'complete', result: { by: 'w2' } });
});
