// When a disk counts as low, and that each change is reported once.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DiskWatch, isLow, reserveOf } from '../../../ops/platform/disk_watch.ts';

const GIB = 1024 ** 3;

describe('a disk', () => {
  it('a disk keeps a tenth of itself free, a large one two gibibytes', () => {
    expect(reserveOf(10 * GIB)).toBe(GIB);
    expect(reserveOf(20 * GIB)).toBe(2 * GIB);
    expect(reserveOf(4000 * GIB)).toBe(2 * GIB);
  });

  it('a disk is low below that, and until a tenth more than that is free again', () => {
    const total = 10 * GIB;
    expect(isLow({ free: GIB, total }, false)).toBe(false);
    expect(isLow({ free: GIB - 1, total }, false)).toBe(true);
    expect(isLow({ free: GIB, total }, true)).toBe(true);
    expect(isLow({ free: 1.1 * GIB, total }, true)).toBe(false);
  });

  it('a disk is never low with all of it free, and always when it is full', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 ** 50 }), fc.boolean(), (total, was) => {
        expect(isLow({ free: total, total }, was)).toBe(false);
        expect(isLow({ free: 0, total }, was)).toBe(true);
      }),
    );
  });
});

describe('DiskWatch', () => {
  it('DiskWatch without a folder is never low', async () => {
    const watch = await DiskWatch.start({ folder: null, onChange: () => undefined, onProblem: () => undefined });
    expect(watch.low).toBe(false);
  });

  it('DiskWatch has checked the disk when it is started', async () => {
    const looks: number[] = [];
    const watch = await DiskWatch.start({
      folder: import.meta.dirname,
      onChange: () => undefined,
      onLook: ({ free, total }) => looks.push(free, total),
      onProblem: () => undefined,
    });
    watch.stop();
    expect(looks).toHaveLength(2);
    expect(looks[0]).toBeLessThanOrEqual(looks[1] ?? 0);
  });

  it('DiskWatch rejects nothing where the disk cannot be read, and logs that', async () => {
    const problems: string[] = [];
    const watch = await DiskWatch.start({
      folder: `${import.meta.dirname}/no such folder`,
      onChange: () => undefined,
      onProblem: (problem) => problems.push(problem),
    });
    watch.stop();
    expect(watch.low).toBe(false);
    expect(problems).toEqual(['the free space of the disk cannot be read']);
  });
});
