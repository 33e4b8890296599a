// Which partitions count as not owned.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ReadinessWatch, RESTART_MS } from '../../../api/system/readiness.ts';
import { sendBeat } from '../../../ops/exchange/heartbeats.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { FaultyLog } from '../../support/faulty_log.ts';

let log = new FaultyLog();
let watch: ReadinessWatch;
let budgetsReady = true;

beforeEach(async () => {
  vi.useFakeTimers();
  log = new FaultyLog();
  budgetsReady = true;
  const deps = {
    tracked: { connected: true },
    pingClickHouse: () => Promise.resolve(true),
    partitions: 3,
    budgetsReady: () => budgetsReady,
  };
  watch = await ReadinessWatch.open(
    { nc: log.nc, bucket: () => Promise.resolve(log.kv) } as unknown as Log,
    deps,
    () => undefined,
  );
});
afterEach(() => {
  watch.close();
  vi.useRealTimers();
});

const own = (partition: number, more: object): void => {
  log.put(`partition.${partition}`, {
    partition,
    owner: 'w1',
    epoch: 1,
    checkpoint: 0,
    completed_through: 0,
    at: '',
    ...more,
  });
};
/** Lets time pass while the worker sends heartbeats. */
const pass = async (seconds: number, more: { up?: boolean } = {}): Promise<void> => {
  for (let second = 0; second < seconds; second += 1) {
    sendBeat(log.nc, { worker_id: 'w1', metrics_url: '', ended: false, ...more });
    await vi.advanceTimersByTimeAsync(1000);
  }
};

it('a partition that a live worker has not recovered for half a minute is not ready until it has', async () => {
  own(0, { up: false });
  own(1, { up: true });
  // The record as an older version writes it.
  own(2, {});
  await pass(25);
  expect(watch.unowned()).toBe(0);
  await pass(10);
  expect(watch.unowned()).toBe(1);
  expect((await watch.check()).checks.consumers).toBe('down');
  own(0, { up: true });
  await pass(1);
  expect(watch.unowned()).toBe(0);
});

it('a partition of a silent worker, or of none, is not ready at once', async () => {
  own(0, { up: true });
  own(1, { up: true, owner: '' });
  await pass(1);
  expect(watch.unowned()).toBe(2);
  await vi.advanceTimersByTimeAsync(6000);
  expect(watch.unowned()).toBe(3);
});

it('the service is ready only once every partition is recovered, a worker takes job calls, and hard limits can be decided', async () => {
  budgetsReady = false;
  for (const partition of [0, 1, 2]) own(partition, { up: partition > 0 });
  await pass(1, { up: true });
  expect((await watch.check()).checks).toMatchObject({ consumers: 'down', budgets: 'down' });
  own(0, { up: true });
  await pass(1, { up: false });
  expect((await watch.check()).checks).toMatchObject({ consumers: 'down', budgets: 'down' });
  await pass(1, { up: true });
  expect(await watch.check()).toMatchObject({ status: 'unavailable', checks: { consumers: 'ok', budgets: 'down' } });
  budgetsReady = true;
  expect((await watch.check()).status).toBe('ready');
});

it('the service stays ready while a worker restarts, but not when nobody takes its partitions', async () => {
  for (const partition of [0, 1, 2]) own(partition, { up: true });
  await pass(1);
  expect((await watch.check()).status).toBe('ready');
  for (const partition of [0, 1, 2]) own(partition, { up: true, owner: '' });
  await vi.advanceTimersByTimeAsync(RESTART_MS - 1000);
  expect([watch.unowned(), (await watch.check()).status]).toEqual([3, 'ready']);
  for (const partition of [0, 1, 2]) own(partition, { up: false });
  await pass(5, { up: false });
  expect((await watch.check()).status).toBe('ready');
  // The worker is killed: it is silent, and then silent for too long.
  await vi.advanceTimersByTimeAsync(RESTART_MS);
  expect([watch.unowned(), (await watch.check()).status]).toEqual([3, 'ready']);
  await vi.advanceTimersByTimeAsync(RESTART_MS);
  expect((await watch.check()).checks.consumers).toBe('down');
});
