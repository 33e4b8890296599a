// The streams of the ingest log: which partitions each one has, and how positions follow from
// sequences, within a generation and across a change of the number of streams.
import { describe, expect, it } from 'vitest';
import { firstLayout, LogLayout, type LogStream, nextGeneration } from '../../../schemas/log_layout.ts';
import { isIngestStream } from '../../../schemas/streams.ts';

const layoutOf = (streams: number, partitions: number) => new LogLayout(firstLayout(streams, partitions));

/** Returns the layout after a change to another number of streams, with the old ends in the record. */
function changed(layout: LogLayout, streams: number, lastSeqs: number[], partitions = 8): LogLayout {
  const closing = new LogLayout({ ...layout.record, next: streams });
  const { generations } = nextGeneration(closing, lastSeqs, partitions);
  const ends = lastSeqs.map((seq) => seq + 1);
  return new LogLayout({
    generations: generations.map((one, at) => (at === generations.length - 2 ? { ...one, ends } : one)),
    next: null,
  });
}

function streamAt(layout: LogLayout, index: number): LogStream {
  const stream = layout.open[index];
  if (stream === undefined) throw new Error(`stream ${index}`);
  return stream;
}

describe('ranges', () => {
  it('a log with one stream has the name and the subjects that it had before there could be several', () => {
    const [stream, ...others] = layoutOf(1, 8).open;
    expect(others).toEqual([]);
    expect([stream?.name, stream?.subjects, stream?.mixed]).toEqual(['INGEST', ['ingest.*'], 'ingest.mixed']);
  });

  it('several streams share the partitions in contiguous ranges, and no subject is in two streams', () => {
    const { open } = layoutOf(3, 8);
    expect(open.map(({ name }) => name)).toEqual(['INGEST', 'INGEST_1', 'INGEST_2']);
    expect(open.map((stream) => stream.partitionsOf(8))).toEqual([
      [0, 1, 2],
      [3, 4, 5],
      [6, 7],
    ]);
    const subjects = open.flatMap((stream) => stream.subjects);
    expect(new Set(subjects).size).toBe(subjects.length);
    expect(subjects).toHaveLength(8 + 3);
  });

  it('every stream has a partition, for every number of streams up to the partitions', () => {
    for (let streams = 1; streams <= 32; streams += 1)
      for (const stream of layoutOf(streams, 32).open) expect(stream.partitionsOf(32)).not.toEqual([]);
  });

  it('names of streams differ across generations, and are names of the ingest log', () => {
    const first = layoutOf(3, 8);
    const names = changed(first, 3, [1, 1, 1]).streams.map(({ name }) => name);
    expect(names).toEqual(['INGEST', 'INGEST_1', 'INGEST_2', 'INGEST_2_0', 'INGEST_2_1', 'INGEST_2_2']);
    expect(names.every(isIngestStream)).toBe(true);
    expect(['EVENTS', 'INGEST_', 'INGEST_X', 'KV_INGEST'].some(isIngestStream)).toBe(false);
  });
});

describe('positions', () => {
  it('with one stream, a position is the sequence', () => {
    const stream = streamAt(layoutOf(1, 8), 0);
    for (const seq of [1, 2, 1000, 2 ** 40]) {
      expect(stream.position(seq)).toBe(seq);
      expect(stream.seqThrough(seq)).toBe(seq);
    }
    expect(stream.seqThrough(0)).toBe(0);
  });

  it.each([1, 2, 3, 4, 32])('each message of %i streams has a position of its own, which names it', (streams) => {
    const layout = layoutOf(streams, 32);
    const seen = new Set<number>();
    for (const stream of layout.open)
      for (let seq = 1; seq <= 50; seq += 1) {
        const position = stream.position(seq);
        expect(seen.has(position)).toBe(false);
        seen.add(position);
        expect(layout.at(position)).toEqual({ stream, seq });
      }
    expect([...seen].toSorted((a, b) => a - b)).toEqual(Array.from({ length: 50 * streams }, (_, at) => at + 1));
  });

  it('seqThrough counts the messages of a stream up to any position, also that of another stream', () => {
    for (const stream of layoutOf(3, 8).open)
      for (let position = 0; position < 40; position += 1) {
        let newest = 0;
        while (stream.position(newest + 1) <= position) newest += 1;
        expect(stream.seqThrough(position)).toBe(newest);
      }
  });

  it.each([
    [1, 4],
    [4, 1],
    [2, 3],
    [3, 2],
  ])('positions of a partition rise when %i streams become %i', (before, after) => {
    const first = layoutOf(before, 8);
    const lastSeqs = first.open.map((_, index) => 10 * (index + 1));
    const then = changed(first, after, lastSeqs);
    const newest = Math.max(...first.open.map((stream, index) => stream.position((lastSeqs[index] ?? 0) + 1000)));
    for (const stream of then.open) expect(stream.position(1)).toBeGreaterThan(newest);
    for (const stream of then.streams) expect(then.at(stream.position(7))).toEqual({ stream, seq: 7 });
  });

  it('a position below the first generation that is left is none of the log', () => {
    const then = changed(layoutOf(2, 8), 2, [5, 5]);
    const left = new LogLayout({ generations: then.record.generations.slice(-1), next: null });
    expect(left.at(3)).toBeNull();
    expect(left.at(0)).toBeNull();
  });
});

describe('reading on', () => {
  const before = layoutOf(1, 8);
  const old = streamAt(before, 0);

  it('a partition is read from its stream, after what it has taken', () => {
    const layout = layoutOf(2, 8);
    expect(layout.readAfter(7, 0)).toEqual({ stream: layout.open[1], seq: 1 });
    expect(layout.readAfter(7, streamAt(layout, 1).position(9))).toEqual({ stream: layout.open[1], seq: 10 });
  });

  it('an old stream is read up to its end, and then the new one from its beginning', () => {
    const then = changed(before, 4, [20]);
    expect(then.readAfter(5, old.position(20))).toEqual({ stream: then.named('INGEST'), seq: 21 });
    expect(then.readAfter(5, old.position(21))).toEqual({ stream: then.named('INGEST_2_2'), seq: 1 });
    const taken = streamAt(then, 2).position(3);
    expect(then.readAfter(5, taken)).toEqual({ stream: then.named('INGEST_2_2'), seq: 4 });
  });

  it('an old stream whose end is not known is read on', () => {
    const { generations } = nextGeneration(new LogLayout({ ...before.record, next: 4 }), [20], 8);
    const then = new LogLayout({ generations, next: null });
    expect(then.readAfter(5, old.position(20))).toEqual({ stream: then.named('INGEST'), seq: 21 });
  });

  it('without its old streams, a partition is read from the beginning of the new one', () => {
    const then = changed(before, 4, [20]);
    const left = new LogLayout({ generations: then.record.generations.slice(-1), next: null });
    expect(left.readAfter(0, old.position(21))).toEqual({ stream: left.open[0], seq: 1 });
    expect(left.isChanging).toBe(false);
    expect(then.isChanging).toBe(true);
  });
});
