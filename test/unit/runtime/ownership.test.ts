// Ownership of partitions while the log answers late or not at all: none may be left without an
// owner, and none may be landed twice.
import { expect, it, vi } from 'vitest';
import { showPresence } from '../../../ops/exchange/heartbeats.ts';
import { ABSENT_MS } from '../../../pipeline/worker/absent_workers.ts';
import { BEAT_MS, LEASE_MS } from '../../../pipeline/worker/live_workers.ts';
import type { PartitionRecord } from '../../../schemas/records/partition.ts';
import { aWorker, beatsOf, log, record, released, SETTLED_TICKS, ticks } from './an_owner.ts';

it('ownership claims what it can when the log fails for one partition, and takes the other later', async () => {
  const { start, reading } = aWorker('w1', 2);
  log.fault = (method, key) =>
    key === 'partition.1' && method !== 'get' ? 'lost' : key === 'partition.1' ? 'away' : null;
  await start();
  expect([...reading]).toEqual([[0, 1]]);
  await ticks(1);
  log.fault = () => null;
  await ticks(1);
  expect([...reading.keys()].toSorted()).toEqual([0, 1]);
  expect(reading.get(1)).toBe(record(1).epoch);
});

it('ownership recovers at the next tick what it could not recover, under the same epoch', async () => {
  const { ownership, start, reading, acquiring } = aWorker('w1', 2);
  acquiring.before = (records) => {
    reading.set(0, records[0]?.epoch ?? 0);
    return Promise.reject(new Error('only one came up'));
  };
  await start();
  expect(ownership.owned).toEqual([
    [0, 1],
    [1, 1],
  ]);
  expect([...reading]).toEqual([[0, 1]]);
  acquiring.before = () => Promise.resolve();
  await ticks(1);
  expect([...reading]).toEqual([
    [0, 1],
    [1, 1],
  ]);
  const asked = vi.fn(() => Promise.resolve());
  acquiring.before = asked;
  await ticks(2);
  expect(asked).not.toHaveBeenCalled();
});

it('ownership reports a recovered partition with its first checkpoint', async () => {
  const { ownership, start } = aWorker('w1', 1);
  await start();
  expect(record(0)).toMatchObject({ owner: 'w1', up: false });
  await ownership.checkpoint({ partition: 0, epoch: 1 }, 7, 5);
  expect(record(0)).toMatchObject({ owner: 'w1', up: true, checkpoint: 7, completed_through: 5 });
});

it('ownership claims no partition while its owner before knew of a newer move between shards', async () => {
  const places = { revision: 3, catchUp: vi.fn(() => Promise.resolve()) };
  log.put('partition.0', { partition: 0, ...released, shards_at: 4 });
  log.put('partition.1', { partition: 1, ...released, shards_at: 3 });
  const { start, reading } = aWorker('w1', 2, places);
  await start();
  expect([...reading.keys()]).toEqual([1]);
  expect(places.catchUp).toHaveBeenCalled();
  places.catchUp.mockImplementation(() => {
    places.revision = 4;
    return Promise.resolve();
  });
  await ticks(1);
  expect([...reading.keys()].toSorted()).toEqual([0, 1]);
  expect(record(0)).toMatchObject({ owner: 'w1', epoch: 5, shards_at: 4 });
});

it('ownership takes a partition that moved to another shard again, under a new epoch that old checkpoints do not reach', async () => {
  const { ownership, start, reading } = aWorker('w1', 1);
  await start();
  await ownership.checkpoint({ partition: 0, epoch: 1 }, 7, 5);
  ownership.renew(0);
  expect(await ownership.checkpoint({ partition: 0, epoch: 1 }, 9, 9)).toBe(false);
  await ticks(1);
  expect(reading.get(0)).toBe(2);
  expect(await ownership.checkpoint({ partition: 0, epoch: 1 }, 9, 9)).toBe(false);
  expect(record(0)).toMatchObject({ epoch: 2, checkpoint: 7, completed_through: 5 });
});

it('ownership hands a partition over although the write that frees it fails at first, and nobody reads it twice', async () => {
  const first = aWorker('w1', 2);
  await first.start();
  expect([...first.reading.keys()]).toEqual([0, 1]);
  log.fault = (method, _key, value) => (method === 'get' || (value as PartitionRecord).owner === '' ? 'away' : null);
  const second = aWorker('w2', 2);
  await second.start();
  await ticks(SETTLED_TICKS);
  expect(first.released).toEqual([[1]]);
  expect([...first.reading.keys()]).toEqual([0]);
  expect([...second.reading.keys()]).toEqual([]);
  log.fault = () => null;
  await ticks(3);
  expect([...first.reading.keys()]).toEqual([0]);
  expect([...second.reading]).toEqual([[1, 2]]);
  expect(first.released).toEqual([[1]]);
});

it('ownership frees what a lost answer left in its name while the shares changed', async () => {
  log.put('partition.1', { partition: 1, owner: '', epoch: 4, checkpoint: 9, completed_through: 9, at: '' });
  const first = aWorker('w1', 2);
  log.fault = (method, key) => (key !== 'partition.1' ? null : method === 'get' ? 'away' : 'lost');
  await first.start();
  // The claim was written, and its answer was lost; by the next tick the partition belongs to
  // another worker's share.
  const stopBeats = beatsOf('w2');
  log.fault = () => null;
  await ticks(SETTLED_TICKS);
  stopBeats();
  expect([...first.reading.keys()]).toEqual([0]);
  expect(record(1)).toMatchObject({ owner: '', epoch: 5, checkpoint: 9 });
});

it('ownership takes a partition back that it could not free, when the newcomer is gone', async () => {
  const first = aWorker('w1', 2);
  await first.start();
  const second = aWorker('w2', 2);
  await second.start();
  log.fault = (method, _key, value) => (method === 'get' || (value as PartitionRecord).owner === '' ? 'away' : null);
  await ticks(SETTLED_TICKS);
  expect([...first.reading.keys()]).toEqual([0]);
  await second.ownership.stop();
  await ticks(1);
  expect([...first.reading]).toEqual([
    [0, 1],
    [1, 2],
  ]);
});

it('ownership sends heartbeats while its first partitions are recovered', async () => {
  const { start, acquiring } = aWorker('w1', 1);
  acquiring.before = () => new Promise((resolve) => setTimeout(resolve, 3 * LEASE_MS));
  const started = start();
  await ticks(13);
  await started;
  const times = log.beats.map(({ at }) => at);
  const gaps = times.slice(1).map((at, index) => at - (times[index] ?? 0));
  expect(Math.max(...gaps)).toBeLessThan(LEASE_MS / 2);
  expect((times.at(-1) ?? 0) - (times[0] ?? 0)).toBeGreaterThan(2 * LEASE_MS);
});

it('ownership keeps the partitions of a worker that stops until their last landing has ended, and claims them then', async () => {
  const [first, second] = [aWorker('w1', 2), aWorker('w2', 2)];
  await first.start();
  await second.start();
  await ticks(SETTLED_TICKS);
  expect([...first.reading.keys()]).toEqual([0]);
  first.releasing.before = () => new Promise((resolve) => setTimeout(resolve, 3 * LEASE_MS));
  const stopped = first.ownership.stop();
  await vi.advanceTimersByTimeAsync(3 * LEASE_MS - 1);
  expect([...first.reading.keys()]).toEqual([0]);
  expect([...second.reading.keys()]).toEqual([1]);
  await ticks(1);
  await stopped;
  expect([...second.reading.keys()].toSorted()).toEqual([0, 1]);
});

it('ownership does not bring a partition up again whose release takes long', async () => {
  const [first, second] = [aWorker('w1', 2), aWorker('w2', 2)];
  await first.start();
  first.held.add(1);
  const brought: number[] = [];
  first.acquiring.before = (records) => {
    brought.push(...records.map(({ partition }) => partition));
    return Promise.resolve();
  };
  await second.start();
  await ticks(2 * SETTLED_TICKS);
  expect(first.released.length).toBeGreaterThan(1);
  expect(brought).toEqual([]);
  first.held.clear();
  await ticks(SETTLED_TICKS);
  expect([...first.reading.keys(), ...second.reading.keys()]).toEqual([0, 1]);
});

it.each(['reconnect', 'breakWatches'] as const)(
  'ownership sees after %s which partitions were freed while it received no updates',
  async (event) => {
    log.put('partition.0', { partition: 0, owner: 'w2', epoch: 4, checkpoint: 9, completed_through: 9, at: '' });
    const { start, reading } = aWorker('w1', 1);
    const stopBeats = beatsOf('w2');
    await start();
    await ticks(1);
    expect([...reading]).toEqual([]);
    log.telling = false;
    log.put('partition.0', { partition: 0, owner: '', epoch: 4, checkpoint: 11, completed_through: 9, at: '' });
    log.telling = true;
    await ticks(2);
    log[event]();
    await ticks(2);
    stopBeats();
    expect([...reading]).toEqual([[0, 5]]);
    expect(record(0)).toMatchObject({ owner: 'w1', checkpoint: 11 });
  },
);

it.each([
  ['at once, when its connection is gone', { present: true, listens: false }, ABSENT_MS],
  ['late, when it is silent and connected', { present: true, listens: true }, LEASE_MS],
  ['late, when it does not say whether it is connected', { present: false, listens: false }, LEASE_MS],
] as const)('ownership takes the partitions of a dead worker over %s', async (_when, other, silence) => {
  log.put('partition.0', { partition: 0, owner: 'w0', epoch: 4, checkpoint: 9, completed_through: 9, at: '' });
  const { start, reading } = aWorker('w1', 1);
  if (other.listens) showPresence(log.nc, 'w0');
  const stopBeats = beatsOf('w0', { sticky: true, ...(other.present ? { present: true } : {}) });
  await start();
  await ticks(Math.ceil(LEASE_MS / BEAT_MS) + 1);
  expect([...reading]).toEqual([]);
  stopBeats();
  await vi.advanceTimersByTimeAsync(Math.max(0, silence - BEAT_MS));
  expect([...reading]).toEqual([]);
  await vi.advanceTimersByTimeAsync(2 * BEAT_MS);
  expect([...reading]).toEqual([[0, 5]]);
});

it('ownership knows the former owner of a partition if that one had read it, because only then are all owners before it fenced off', async () => {
  const dead = { epoch: 4, checkpoint: 9, completed_through: 9, at: '' };
  log.put('partition.0', { ...dead, partition: 0, owner: 'w0', up: true });
  log.put('partition.1', { ...dead, partition: 1, owner: 'w0', up: false });
  log.put('partition.2', { ...dead, partition: 2, owner: 'w0' });
  log.put('partition.3', { ...dead, partition: 3, owner: '', up: true });
  const { ownership, start, reading } = aWorker('w1', 4);
  await start();
  await ticks(Math.ceil(LEASE_MS / BEAT_MS) + 2);
  expect([...reading.keys()].toSorted()).toEqual([0, 1, 2, 3]);
  expect([0, 1, 2, 3].map(ownership.formerOf)).toEqual(['w0', null, null, null]);
  expect(['w0', 'w1'].map(ownership.isLive)).toEqual([false, true]);
});
