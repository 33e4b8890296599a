// Tests which streams of the ingest log a worker reads, and which worker owns a partition.
import { describe, expect, it } from 'vitest';
import { plan } from '../../../pipeline/worker/log_readers.ts';
import { ownerOf } from '../../../pipeline/worker/owner_of.ts';
import { firstLayout, LogLayout } from '../../../schemas/log_layout.ts';

const state = (partition: number, taken_through: number) => ({ partition, taken_through });
const named = (readings: ReturnType<typeof plan>) =>
  readings.map(({ stream, partitions, fromSeq }) => [stream.name, partitions, fromSeq]);

describe('what is read', () => {
  it('one stream is read for all partitions from the one that is furthest behind', () => {
    const layout = new LogLayout(firstLayout(1, 8));
    expect(named(plan(layout, [state(0, 7), state(5, 3), state(6, 9)]))).toEqual([['INGEST', [0, 5, 6], 4]]);
    expect(plan(layout, [])).toEqual([]);
  });

  it('each stream is read for its own partitions, from its own sequence', () => {
    const layout = new LogLayout(firstLayout(2, 8));
    const [low, high] = layout.open;
    const states = [state(1, low?.position(4) ?? NaN), state(6, high?.position(9) ?? NaN), state(7, 0)];
    expect(named(plan(layout, states))).toEqual([
      ['INGEST', [1], 5],
      ['INGEST_1', [6, 7], 1],
    ]);
  });

  it('a partition that has taken all of an old stream is read from the new one, beside others that have not', () => {
    const [first] = firstLayout(1, 8).generations;
    const layout = new LogLayout({
      generations: [
        { number: 1, streams: 1, partitions: first?.partitions ?? 8, offset: 0, ends: [10] },
        { number: 2, streams: 2, partitions: 8, offset: 1000, ends: null },
      ],
      next: null,
    });
    expect(named(plan(layout, [state(0, 10), state(1, 9), state(7, 10)]))).toEqual([
      ['INGEST_2_0', [0], 1],
      ['INGEST', [1], 10],
      ['INGEST_2_1', [7], 1],
    ]);
  });
});

describe('the owner of a partition', () => {
  const owned = (workers: number, partitions: number, isRanged: boolean) => {
    const live = Array.from({ length: workers }, (_, worker) => `w${worker}`);
    const owners = Array.from({ length: partitions }, (_, one) => ownerOf(one, { live, partitions, isRanged }));
    return live.map((worker) => owners.flatMap((owner, partition) => (owner === worker ? [partition] : [])));
  };

  it('partitions of a log with one stream are dealt out in turn', () => {
    expect(owned(2, 5, false)).toEqual([
      [0, 2, 4],
      [1, 3],
    ]);
  });

  it('partitions of a log with several streams are owned in ranges, so that few workers read a stream', () => {
    expect(owned(3, 8, true)).toEqual([
      [0, 1, 2],
      [3, 4, 5],
      [6, 7],
    ]);
    const { open } = new LogLayout(firstLayout(4, 8));
    const readers = open.map(
      (stream) => owned(4, 8, true).filter((partitions) => partitions.some((one) => stream.has(one))).length,
    );
    expect(readers).toEqual([1, 1, 1, 1]);
  });

  it.each([true, false])('each partition has one owner, and shares differ by one at most (ranges: %s)', (isRanged) => {
    for (let workers = 1; workers <= 10; workers += 1) {
      const shares = owned(workers, 16, isRanged);
      expect(shares.flat().toSorted((a, b) => a - b)).toEqual(Array.from({ length: 16 }, (_, at) => at));
      const sizes = shares.map(({ length }) => length);
      expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1);
    }
    expect(ownerOf(0, { live: [], partitions: 16, isRanged })).toBeUndefined();
  });
});
