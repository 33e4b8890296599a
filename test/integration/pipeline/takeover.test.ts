// A worker is killed, paused or cut off, and its partition gets another owner or keeps its own, with a
// real NATS server and real processes. The worker w0 is a process of its own and owns partition 0; w1, in this process, owns
// partition 1.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { KV } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createLogger } from '../../../ops/platform/logger.ts';
import { freePort } from '../../../ops/launch/process/ports.ts';
import { connectNats } from '../../../ops/platform/nats/connect.ts';
import { openLog } from '../../../ops/platform/nats/open_log.ts';
import { LEASE_MS } from '../../../pipeline/worker/live_workers.ts';
import { Ownership } from '../../../pipeline/worker/ownership.ts';
import { type PartitionRecord, partitionKey, partitionRecord } from '../../../schemas/records/partition.ts';
import { presenceSubject } from '../../../schemas/signals/heartbeats.ts';
import { Proxy as TcpProxy } from '../../chaos/proxy.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';

const PARTITIONS = 2;
/** A lease that does not end during a test. */
const ENDLESS_MS = 3_600_000;
/** Looks of w1 after which a worker that is absent would have counted as dead long ago. */
const LOOKS = 12;

let nats: TestNats;
let proxy: TcpProxy;
let w0: ChildProcess;
/** The reports of w0, in order. */
let reports: string[];
let nc: NatsConnection;
let kv: KV;
let w1: Ownership | null;
/** Partitions that w1 holds. */
let held: Set<number>;
/** How often w1 has asked whether w0 is connected. */
let looks: number;

beforeEach(async () => {
  nats = await startTestNats();
  const port = await freePort();
  const target = new URL(nats.url);
  proxy = new TcpProxy(port, Number(target.port));
  await proxy.open();
  nc = await connectNats({ url: nats.url, name: 'w1', waitMs: 10_000 });
  kv = await (await openLog(nc, { replicas: 1, logBytesMax: 64 * 1024 ** 2 })).bucket('partitions');
  held = new Set();
  reports = [];
  looks = 0;
  w1 = null;
});
afterEach(async () => {
  w0.kill('SIGKILL');
  if (w0.exitCode === null && w0.signalCode === null) await once(w0, 'exit');
  await w1?.stop();
  await nc.close();
  await proxy.close();
  await nats.remove();
});

/** Returns the connection of w1, which counts the looks for w0. */
const counting = (): NatsConnection =>
  new Proxy(nc, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        if (name === 'request' && args[0] === presenceSubject('w0')) looks += 1;
        return (value as (...given: unknown[]) => unknown).apply(target, args);
      };
    },
  });

/** Starts both workers, and resolves when each owns its partition. */
async function startBoth(leaseMs: number): Promise<void> {
  const url = new URL(nats.url);
  const through = nats.url.replace(`:${url.port}`, `:${proxy.port}`);
  const args = [through, 'w0', String(PARTITIONS), String(leaseMs)];
  w0 = fork(new URL('../../support/owning_worker.ts', import.meta.url), args);
  w0.on('message', (report) => {
    if (typeof report === 'string') reports.push(report);
  });
  await eventually(() => reports.length === PARTITIONS, { what: 'the first worker owns both partitions' });
  w1 = new Ownership({
    nc: counting(),
    kv,
    workerId: 'w1',
    partitions: PARTITIONS,
    metricsUrl: '',
    streamOf: () => 0,
    leaseMs,
    logger: createLogger('test', 'silent'),
  });
  await w1.start({
    acquire: (records) => {
      for (const { partition } of records) held.add(partition);
      return Promise.resolve(records.map(({ partition }) => partition));
    },
    release: (released) => {
      for (const partition of released) held.delete(partition);
      return Promise.resolve(released);
    },
    lose: (partition) => held.delete(partition),
  });
  await eventually(() => held.has(1), { what: 'the second worker owns its partition' });
  expect(reports).toEqual(['acquired 0 at 1', 'acquired 1 at 1', 'released 1']);
}

async function recordOf(partition: number): Promise<PartitionRecord> {
  const entry = await kv.get(partitionKey(partition));
  return partitionRecord.parse(entry?.json());
}

async function moreLooks(): Promise<void> {
  const before = looks;
  await eventually(() => looks >= before + LOOKS, { what: 'further looks for the other worker' });
}

it('takes the partitions of a killed worker over although its lease has not ended', async () => {
  await startBoth(ENDLESS_MS);
  w0.kill('SIGKILL');
  await eventually(() => held.has(0), { what: 'the partition is taken over' });
  expect(await recordOf(0)).toMatchObject({ owner: 'w1', epoch: 2 });
});

it('leaves a paused worker its partitions while its lease lasts', async () => {
  await startBoth(ENDLESS_MS);
  w0.kill('SIGSTOP');
  await moreLooks();
  expect(await recordOf(0)).toMatchObject({ owner: 'w0', epoch: 1 });
  expect([...held]).toEqual([1]);
  w0.kill('SIGCONT');
  w0.send('checkpoint');
  await eventually(() => reports.includes('checkpoint accepted'), { what: 'the worker goes on' });
  expect(reports).not.toContain('lost 0');
});

it('takes the partitions of a paused worker over when its lease ends, and rejects its writes when it wakes', async () => {
  await startBoth(LEASE_MS);
  w0.kill('SIGSTOP');
  await eventually(() => held.has(0), { what: 'the partition is taken over' });
  const { owner, epoch } = await recordOf(0);
  expect(owner).toBe('w1');
  w0.send('checkpoint');
  w0.kill('SIGCONT');
  await eventually(() => reports.includes('checkpoint rejected'), { what: 'the answer of the worker' });
  await eventually(() => reports.at(-1)?.startsWith('acquired 1 ') === true, { what: 'the worker gets a share' });
  expect(reports).toContain('lost 0');
  expect(await recordOf(0)).toMatchObject({ owner: 'w1', epoch });
});

it('takes the partitions of a worker over that is cut off from NATS, and the worker drops them when it is back', async () => {
  await startBoth(ENDLESS_MS);
  proxy.set('cut');
  await eventually(() => held.has(0), { what: 'the partition is taken over' });
  expect(await recordOf(0)).toMatchObject({ owner: 'w1', epoch: 2 });
  // The worker still believes that it owns the partition.
  expect(reports).not.toContain('lost 0');
  w0.send('checkpoint');
  proxy.set('pass');
  await eventually(() => reports.at(-1)?.startsWith('acquired 1 ') === true, { what: 'the worker gets a share' });
  expect(reports).toContain('lost 0');
  expect(reports).not.toContain('checkpoint accepted');
  expect([...held]).toEqual([0]);
});
