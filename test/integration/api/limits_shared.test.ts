// One organization's rate limit over several API processes. Three real processes under full load
// together grant what one would grant alone, and a process that replaces a killed one does not
// grant a second burst. The bounds are computed from the same clock that refills the buckets, so
// they hold on a busy machine too. Before the processes have heard of each other, each further
// process grants at most one extra burst.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';
import { type Caller, makeKey, makeOrg } from '../a_tenant.ts';
import { ADMIN_TOKEN, call, JWT_SECRET, KEY, ORG } from './an_api.ts';

/** Requests per minute, low enough that a busy machine still sends twice as many. */
const PER_MINUTE = 300;
const BURST = 20;
/**
 * Duration of the load in ms, long enough that the worst debt of three processes (two bursts, 8 s)
 * is repaid well before the end.
 */
const HAMMER_MS = 12_000;
const LANES = 4;

interface Process {
  child: ChildProcess;
  url: string;
}

let nats: TestNats;
let processes: Process[];
const started = new Set<ChildProcess>();
const operator = { 'X-Org-Api-Key': '', 'X-Org-Id': '', Authorization: `Bearer ${ADMIN_TOKEN}` };

async function start(): Promise<Process> {
  const child = fork(new URL('../../../api/main.ts', import.meta.url), {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    execArgv: [],
    env: {
      PATH: process.env['PATH'],
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      SERVICE_NATS_URL: nats.url,
      SERVICE_CLICKHOUSE_URL: 'http://app:secret@127.0.0.1:9/millrace',
      SERVICE_PORT: '0',
      SERVICE_LOG_LEVEL: 'silent',
      SERVICE_ADMIN_TOKEN: ADMIN_TOKEN,
      SERVICE_JWT_SECRET: JWT_SECRET,
      SERVICE_BOOTSTRAP_ORG_ID: ORG,
      SERVICE_BOOTSTRAP_API_KEY: KEY,
    },
  });
  started.add(child);
  const ended = once(child, 'exit').then(() => {
    throw new Error('an API process ended before it was ready');
  });
  ended.catch(() => undefined);
  const [said] = (await Promise.race([once(child, 'message'), ended])) as [{ port: number }];
  return { child, url: `http://127.0.0.1:${said.port}` };
}

beforeAll(async () => {
  nats = await startTestNats();
  processes = [await start(), await start(), await start()];
});

afterAll(async () => {
  for (const child of started) if (child.exitCode === null) child.kill('SIGKILL');
  await nats.remove();
});

/** Creates an organization with these limits. Resolves once every process knows it and its key. */
async function makeLimited(org_id: string): Promise<Caller> {
  const [first] = processes;
  if (first === undefined) throw new Error('no process');
  const rate_limits = { ingest_per_minute: PER_MINUTE, api_per_minute: PER_MINUTE, burst: BURST };
  const org = await makeOrg(first, { org_id, rate_limits });
  const tenant = await makeKey(first, org, ['*']);
  for (const at of processes)
    await eventually(
      async () =>
        (await call(at, 'GET', '/orgs/org_of_others', { headers: tenant })).status === 403 &&
        (await call(at, 'GET', '/admin/orgs', { headers: operator })).text.includes(`"${org}"`),
    );
  return tenant;
}

const withinMs = (ms: number): (() => boolean) => {
  const end = performance.now() + ms;
  return () => performance.now() < end;
};

/**
 * Sends requests to all of these processes as fast as they answer. Returns the numbers of requests
 * sent and granted, and the duration in seconds.
 */
async function hammer(
  targets: readonly Process[],
  tenant: Caller,
  goOn: () => boolean,
): Promise<{ granted: number; asked: number; seconds: number }> {
  const began = performance.now();
  let granted = 0;
  let asked = 0;
  const lane = async (target: Process) => {
    while (goOn()) {
      const { status } = await call(target, 'GET', `/orgs/${tenant['X-Org-Id']}`, { headers: tenant });
      expect([200, 429]).toContain(status);
      asked++;
      if (status === 200) granted++;
    }
  };
  await Promise.all(targets.flatMap((target) => Array.from({ length: LANES }, () => lane(target))));
  return { granted, asked, seconds: (performance.now() - began) / 1000 };
}

const ofOneProcess = (seconds: number) => BURST + (PER_MINUTE / 60) * seconds;

test('three processes together grant what one does, not three times as much', async () => {
  const alone = await hammer(processes.slice(0, 1), await makeLimited('org_alone'), withinMs(HAMMER_MS));
  expect(alone.granted).toBeLessThanOrEqual(ofOneProcess(alone.seconds));
  // Tokens above the burst are lost while other load on the machine delays the lanes.
  expect(alone.granted).toBeGreaterThan(0.5 * ofOneProcess(alone.seconds));

  const together = await hammer(processes, await makeLimited('org_together'), withinMs(HAMMER_MS));
  // Processes that did not share their counts would grant three times as much.
  expect(together.asked).toBeGreaterThan(2 * together.granted);
  expect(together.granted).toBeLessThan(1.5 * ofOneProcess(together.seconds));
  expect(together.granted).toBeGreaterThan(0.5 * ofOneProcess(together.seconds));
}, 120_000);

test('a process that replaces a killed one grants no burst in addition to the one that was used up', async () => {
  const tenant = await makeLimited('org_replaced');
  const [first, second, third] = processes;
  if (first === undefined || second === undefined || third === undefined) throw new Error('three processes are needed');
  third.child.kill('SIGKILL');
  let done = false;
  const others = hammer([first, second], tenant, () => !done);
  const late = await start();
  let asked = 0;
  const ofLate = await hammer([late], tenant, () => ++asked <= 3 * BURST);
  done = true;
  await others;
  // The bound is what refills the bucket meanwhile; a fresh bucket would add BURST to it.
  expect(ofLate.asked).toBe(3 * BURST);
  expect(ofLate.granted).toBeLessThan((PER_MINUTE / 60) * ofLate.seconds + BURST / 2);
}, 120_000);
