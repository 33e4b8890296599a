// Ownership of partitions while the log answers late or not at all: none may be left without an
// owner, and none may be landed twice.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createLogger } from '../../../ops/platform/logger.ts';
import { sendBeat, showPresence } from '../../../ops/exchange/heartbeats.ts';
import { ABSENT_MS } from '../../../pipeline/worker/absent_workers.ts';
import { BEAT_MS, LEASE_MS } from '../../../pipeline/worker/live_workers.ts';
import { Ownership, type OwnershipOptions } from '../../../pipeline/worker/ownership.ts';
import type { PartitionRecord } from '../../../schemas/records/partition.ts';
import type { Heartbeat } from '../../../schemas/signals/heartbeats.ts';
import { FaultyLog } from '../../support/faulty_log.ts';

let log = new FaultyLog();
let running: Ownership[] = [];

beforeEach(() => {
  vi.useFakeTimers();
  log = new FaultyLog();
});
afterEach(async () => {
  log.fault = () => null;
  for (const ownership of running) await ownership.stop();
  running = [];
  vi.useRealTimers();
});

interface Worker {
  ownership: Ownership;
  /** Starts the ownership with a holder that reads what it acquires. */
  start: () => Promise<void>;
  /** Epochs of the partitions that are being read, by partition. */
  reading: Map<number, number>;
  /** Runs before acquire does its work. */
  acquiring: { before: (records: PartitionRecord[]) => Promise<void> };
  /** Runs before release does its work. */
  releasing: { before: () => Promise<void> };
  released: number[][];
  /** Partitions whose release takes longer than the worker waits for it; they cannot be acquired meanwhile. */
  held: Set<number>;
}

/** Returns a worker with this number of partitions that reads on command. */
function aWorker(workerId: string, partitions: number, places?: OwnershipOptions['places']): Worker {
  const reading: Worker['reading'] = new Map();
  const acquiring: Worker['acquiring'] = { before: () => Promise.resolve() };
  const releasing: Worker['releasing'] = { before: () => Promise.resolve() };
  const released: number[][] = [];
  const held = new Set<number>();
  const ownership = new Ownership({
    nc: log.nc,
    kv: log.kv,
    workerId,
    partitions,
    metricsUrl: '',
    streamOf: () => 0,
    ...(places !== undefined && { places }),
    logger: createLogger('test', 'silent'),
  });
  const start = () =>
    ownership.start({
      acquire: async (records) => {
        await acquiring.before(records);
        const now = records.filter(({ partition }) => !held.has(partition));
        for (const { partition, epoch } of now) reading.set(partition, epoch);
        return now.map(({ partition }) => partition);
      },
      release: async (given) => {
        released.push(given);
        await releasing.before();
        const now = given.filter((partition) => !held.has(partition));
        for (const partition of now) reading.delete(partition);
        return now;
      },
      lose: (partition) => reading.delete(partition),
    });
  running.push(ownership);
  return { ownership, start, reading, acquiring, releasing, released, held };
}

/** The record of a partition that its owner has released. */
const released = { owner: '', epoch: 4, checkpoint: 9, completed_through: 9, at: '' };
const ticks = (count: number): Promise<unknown> => vi.advanceTimersByTimeAsync(count * BEAT_MS);
const record = (partition: number): PartitionRecord => log.value(`partition.${partition}`) as PartitionRecord;
/** Sends a heartbeat of another worker, now and until the returned function is called. */
function beatsOf(worker_id: string, more: Partial<Heartbeat> = { sticky: true }): () => void {
  const beat = (): void => {
    sendBeat(log.nc, { worker_id, metrics_url: '', ended: false, ...more });
  };
  beat();
  const beats = setInterval(beat, BEAT_MS);
  return () => {
    clearInterval(beats);
  };
}
/** Until both workers know of each other, and membership has settled. */
const SETTLED_TICKS = 4;

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
