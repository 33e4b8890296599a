// Workers of a test that own partitions on a log whose answers may be late or lost, with the timers of vitest.
import { afterEach, beforeEach, vi } from 'vitest';
import { createLogger } from '../../../ops/platform/logger.ts';
import { sendBeat } from '../../../ops/exchange/heartbeats.ts';
import { BEAT_MS } from '../../../pipeline/worker/live_workers.ts';
import { Ownership, type OwnershipOptions } from '../../../pipeline/worker/ownership.ts';
import type { PartitionRecord } from '../../../schemas/records/partition.ts';
import type { Heartbeat } from '../../../schemas/signals/heartbeats.ts';
import { FaultyLog } from '../../support/faulty_log.ts';

export let log = new FaultyLog();
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

export interface Worker {
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
export function aWorker(workerId: string, partitions: number, places?: OwnershipOptions['places']): Worker {
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
export const released = { owner: '', epoch: 4, checkpoint: 9, completed_through: 9, at: '' };
export const ticks = (count: number): Promise<unknown> => vi.advanceTimersByTimeAsync(count * BEAT_MS);
export const record = (partition: number): PartitionRecord => log.value(`partition.${partition}`) as PartitionRecord;
/** Sends a heartbeat of another worker, now and until the returned function is called. */
export function beatsOf(worker_id: string, more: Partial<Heartbeat> = { sticky: true }): () => void {
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
export const SETTLED_TICKS = 4;
