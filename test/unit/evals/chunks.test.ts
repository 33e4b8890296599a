import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  begunProgress,
  chunkRange,
  doneOf,
  finishedChunk,
  heardChunk,
  isThrough,
  MODEL_CHUNK,
  resentChunks,
  RULE_CHUNK,
  stoppedChunk,
  WINDOW_CHUNKS,
} from '../../../pipeline/domain/evals/chunks.ts';
import { partsOf } from '../../../schemas/records/dataset.ts';
import { type EvalProgress, PART_IDS } from '../../../schemas/records/eval.ts';

const finish = (progress: EvalProgress, chunk: number): EvalProgress => finishedChunk(progress, chunk, 0) ?? progress;

describe('how an eval goes on', () => {
  it("an eval takes every trace exactly once, in any order of its chunks' ends, with a few queued at a time", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 500 }),
        fc.integer({ min: 1, max: 40 }),
        fc.infiniteStream(fc.nat()),
        (total, size, picks) => {
          let progress = begunProgress(total, size, 0);
          const taken: number[] = [];
          for (const pick of picks) {
            expect(progress.open.length).toBeLessThanOrEqual(WINDOW_CHUNKS);
            expect(doneOf(progress)).toBe(taken.length);
            const { chunk } = progress.open[pick % progress.open.length] ?? { chunk: -1 };
            const { from, to } = chunkRange(progress, chunk);
            for (let at = from; at < to; at++) taken.push(at);
            progress = finish(progress, chunk);
            // Reported again, it changes nothing.
            expect(finishedChunk(progress, chunk, 0)).toBeNull();
            if (isThrough({ progress, error: null })) break;
          }
          expect(taken.sort((a, b) => a - b)).toEqual(Array.from({ length: total }, (_, i) => i));
          expect(doneOf(progress)).toBe(total);
        },
      ),
      { numRuns: 200 },
    );
  });

  it('an eval of nothing is one empty chunk', () => {
    const progress = begunProgress(0, 100, 0);
    expect(progress.open.map(({ chunk }) => chunk)).toEqual([0]);
    expect(chunkRange(progress, 0)).toEqual({ from: 0, to: 0 });
    expect(isThrough({ progress: finish(progress, 0), error: null })).toBe(true);
  });

  it('silent chunks are queued again, and no others', () => {
    const begun = begunProgress(1000, 100, 1000);
    const heard = heardChunk(begun, 2, 5000);
    expect(resentChunks(begun, 999, 9000)).toBeNull();
    expect(resentChunks(heard ?? begun, 1000, 9000)?.open.map(({ chunk, sent_ms }) => [chunk, sent_ms])).toEqual([
      [0, 9000],
      [1, 9000],
      [2, 1000],
      [3, 9000],
    ]);
    expect(heardChunk(begun, 17, 5000)).toBeNull();
  });

  it('an eval that cannot continue queues no further chunk, and is done when its open ones have ended', () => {
    let progress = begunProgress(1000, 100, 0);
    for (const { chunk } of progress.open) {
      expect(isThrough({ progress, error: 'quota' })).toBe(false);
      progress = stoppedChunk(progress, chunk) ?? progress;
    }
    expect(progress.next_chunk).toBe(WINDOW_CHUNKS);
    expect(isThrough({ progress, error: 'quota' })).toBe(true);
    expect(isThrough({ progress, error: null })).toBe(false);
    expect(stoppedChunk(progress, 0)).toBeNull();
  });

  it("a chunk never spans two parts of the eval's ids", () => {
    for (const size of [RULE_CHUNK, MODEL_CHUNK]) expect(PART_IDS % size).toBe(0);
  });
});

describe('the parts of a dataset', () => {
  it('the parts of a dataset are those that contain the requested items', () => {
    expect(partsOf([0, 10, 15], 0, 5)).toEqual([0]);
    expect(partsOf([0, 10, 15], 9, 11)).toEqual([0, 1]);
    expect(partsOf([0, 10, 15], 10, 15)).toEqual([1]);
    expect(partsOf([0, 10, 15], 14, 99)).toEqual([1, 2]);
    expect(partsOf([0, 10, 15], 3, 3)).toEqual([]);
  });
});
