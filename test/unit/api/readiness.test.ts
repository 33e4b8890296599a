// Which partitions count as nobody's.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ReadinessWatch } from '../../../api/system/readiness.ts';
import { sendBeat } from '../../../ops/heartbeats.ts';
import type { Log } from '../../../ops/nats/open_log.ts';
import { FaultyLog } from '../../support/faulty_log.ts';

let log = new FaultyLog();
let watch: ReadinessWatch;

beforeEach(async () => {
  vi.useFakeTimers();
  log = new FaultyLog();
  const deps = { tracked: { connected: true }, pingClickHouse: () => Promise.resolve(true), partitions: 3 };
  watch = await ReadinessWatch.open({ nc: log.nc, bucket: () => Promise.resolve(log.kv) } as unknown as Log, deps, () => undefined);
});
afterEach(() => {
  watch.close();
  vi.useRealTimers();
});

const own = (partition: number, more: object): void => {
  log.put(`partition.${String(partition)}`, { partition, owner: 'w1', epoch: 1, checkpoint: 0, completed_through: 0, at: '', ...more });
};
/** Lets time go by while the worker beats. */
const pass = async (seconds: number): Promise<void> => {
  for (let second = 0; second < seconds; second += 1) {
    sendBeat(log.nc, { worker_id: 'w1', metrics_url: '', ended: false });
    await vi.advanceTimersByTimeAsync(1000);
  }
};

it('a partition that a live worker has not brought up for half a minute, until it is up', async () => {
  own(0, { up: false });
  own(1, { up: true });
  // As an older version writes it.
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

it('a partition of a worker that is silent, or of nobody, at once', async () => {
  own(0, { up: true });
  own(1, { up: true, owner: '' });
  await pass(1);
  expect(watch.unowned()).toBe(2);
  await vi.advanceTimersByTimeAsync(6000);
  expect(watch.unowned()).toBe(3);
});
