// Ownership of partitions while workers join, leave, break off and have different views: shares are even, and
// what is handed over is landed by one worker at a time.
import { expect, it, vi } from 'vitest';
import { showPresence } from '../../../ops/exchange/heartbeats.ts';
import { ABSENT_MS } from '../../../pipeline/worker/absent_workers.ts';
import { BEAT_MS, LEASE_MS } from '../../../pipeline/worker/live_workers.ts';
import { aWorker, beatsOf, log, record, released, SETTLED_TICKS, ticks } from './an_owner.ts';

it('ownership leaves a worker its partitions whose connection breaks and is back in time', async () => {
  log.put('partition.0', { partition: 0, owner: 'w0', epoch: 4, checkpoint: 9, completed_through: 9, at: '' });
  const { start, reading } = aWorker('w1', 1);
  const disconnect = showPresence(log.nc, 'w0');
  let stopBeats = beatsOf('w0', { sticky: true, present: true });
  await start();
  await ticks(Math.ceil(LEASE_MS / BEAT_MS) + 1);
  disconnect();
  stopBeats();
  await vi.advanceTimersByTimeAsync(ABSENT_MS - 100);
  showPresence(log.nc, 'w0');
  stopBeats = beatsOf('w0', { sticky: true, present: true });
  await ticks(6);
  stopBeats();
  expect([...reading]).toEqual([]);
  expect(record(0)).toMatchObject({ owner: 'w0', epoch: 4 });
});

it('ownership claims again what the store attributes to a newer owner, when the record says that there is none', async () => {
  const { ownership, start, reading } = aWorker('w1', 1);
  await start();
  ownership.fenced(0);
  expect([...reading]).toEqual([]);
  await ticks(1);
  expect([...reading]).toEqual([[0, 2]]);
});

it('ownership releases to a worker that joins only what it needs for an even share, and takes only what one leaves', async () => {
  const workers = ['w1', 'w2', 'w3'].map((id) => aWorker(id, 12));
  const [first, second, third] = workers;
  const counts = () => workers.map(({ reading }) => reading.size);
  const epochs = () => Array.from({ length: 12 }, (_, partition) => record(partition).epoch);
  await first?.start();
  await second?.start();
  await ticks(SETTLED_TICKS);
  expect(counts()).toEqual([6, 6, 0]);
  const before = epochs();
  await third?.start();
  await ticks(SETTLED_TICKS);
  expect(counts()).toEqual([4, 4, 4]);
  expect(epochs().filter((epoch, partition) => epoch !== before[partition])).toHaveLength(4);
  const between = epochs();
  await second?.ownership.stop();
  await ticks(SETTLED_TICKS);
  expect(counts()).toEqual([6, 0, 6]);
  expect(epochs().filter((epoch, partition) => epoch !== between[partition])).toHaveLength(4);
});

it('ownership hands over what is released, takes what is free, and reads again what it keeps after all', async () => {
  const [first, second] = [aWorker('w1', 4), aWorker('w2', 4)];
  await first.start();
  for (const partition of [0, 1, 2, 3]) first.held.add(partition);
  await second.start();
  await ticks(SETTLED_TICKS);
  expect([first.reading.size, second.reading.size]).toEqual([4, 0]);
  const asked = first.released.at(-1) ?? [];
  expect(asked).toHaveLength(2);
  const [now = -1, later = -1] = asked;
  first.held.delete(now);
  await ticks(SETTLED_TICKS);
  expect([first.reading.size, [...second.reading.keys()]]).toEqual([3, [now]]);
  // The release of the other one ends when the newcomer has left, so that its owner keeps it.
  first.reading.delete(later);
  await second.ownership.stop();
  first.held.clear();
  await ticks(SETTLED_TICKS);
  expect([...first.reading.keys()].toSorted()).toEqual([0, 1, 2, 3]);
});

it('ownership divides the partitions by sorted ids while a worker of an older version lives', async () => {
  const { start, reading } = aWorker('w1', 4);
  await start();
  const stopBeats = beatsOf('w0', {});
  await ticks(SETTLED_TICKS);
  expect([...reading.keys()]).toEqual([1, 3]);
  stopBeats();
  await ticks(2 * SETTLED_TICKS);
  expect([...reading.keys()].toSorted()).toEqual([0, 1, 2, 3]);
});

it('ownership leaves an owner its share that it has not heard yet, until it is known to be dead', async () => {
  log.put('partition.0', { partition: 0, owner: 'w0', epoch: 4, checkpoint: 9, completed_through: 9, at: '' });
  const { start, reading } = aWorker('w1', 4);
  await start();
  expect([...reading.keys()]).toEqual([2, 3]);
  await ticks(Math.ceil(LEASE_MS / BEAT_MS) + 1);
  expect([...reading.keys()].toSorted()).toEqual([0, 1, 2, 3]);
});

it('ownership releases nothing while a worker has no connection, because the shares may be about to change', async () => {
  const { start, reading, released: given } = aWorker('w1', 2);
  await start();
  const stopBeats = beatsOf('w0', { sticky: true, present: true });
  await ticks(SETTLED_TICKS);
  expect([...reading.keys()]).toEqual([0, 1]);
  showPresence(log.nc, 'w0');
  await ticks(1);
  stopBeats();
  expect(given).toEqual([[1]]);
});

it('ownership brings up together what is released while it claims the first of it', async () => {
  for (const partition of [0, 1, 2, 3]) log.put(`partition.${partition}`, { ...released, partition, owner: 'w0' });
  const stopBeats = beatsOf('w0');
  const { start, acquiring } = aWorker('w1', 4);
  const acquired: number[][] = [];
  acquiring.before = (records) => {
    acquired.push(records.map(({ partition }) => partition));
    return Promise.resolve();
  };
  await start();
  log.fault = (method, key) => {
    if (method === 'update' && key === 'partition.2') log.put('partition.3', { ...released, partition: 3 });
    return null;
  };
  log.put('partition.2', { ...released, partition: 2 });
  await ticks(1);
  stopBeats();
  expect(acquired).toEqual([[2, 3]]);
});
