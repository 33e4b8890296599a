// Tests which streams of the ingest log a worker reads.
import { describe, expect, it } from 'vitest';
import { plan } from '../../../pipeline/worker/log_readers.ts';
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
