// Division of the partitions among the live workers: even, with as few moves as possible, the same for all
// workers, and with few readers of each stream. The generated cases are settled and unsettled divisions.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { divide, divideByIds, type Facts } from '../../../pipeline/worker/shares.ts';
import '../../support/properties.ts';
import { WorkersModel } from '../../support/workers_model.ts';

const named = (count: number): string[] => Array.from({ length: count }, (_, index) => `w${index}`).toSorted();
const ranges = (partitions: number, streams: number): number[] =>
  Array.from({ length: partitions }, (_, partition) => Math.floor((partition * streams) / partitions));
/** Facts in which no partition has an owner. */
const fresh = (workers: number, partitions: number, streams: number): Facts => ({
  workers: named(workers),
  owners: Array.from({ length: partitions }, () => null),
  streams: ranges(partitions, streams),
});
const after = (facts: Facts): Facts => ({ ...facts, owners: divide(facts) });

const sizes = ({ workers, owners }: Facts): number[] =>
  workers.map((worker) => owners.filter((owner) => owner === worker).length);
/** Partitions of live workers that a division moves. */
const moved = ({ owners }: Facts, divided: readonly (string | null)[]): number[] =>
  [...owners.keys()].filter((partition) => owners[partition] !== null && owners[partition] !== divided[partition]);
/** Pairs of a worker and a stream that it reads. */
const readers = ({ owners, streams }: Facts): number =>
  new Set(owners.map((owner, partition) => `${owner} ${streams[partition]}`)).size;

/** Any owners, as after several workers have joined and left at once. Some live workers own nothing yet. */
const facts = fc
  .record({
    workers: fc.integer({ min: 1, max: 12 }),
    partitions: fc.integer({ min: 1, max: 48 }),
    streams: fc.integer({ min: 1, max: 6 }),
  })
  .chain(({ workers, partitions, streams }) =>
    fc
      .subarray(named(workers), { minLength: 1 })
      .chain((owning) =>
        fc.array(fc.option(fc.constantFrom(...owning)), { minLength: partitions, maxLength: partitions }),
      )
      .map((owners): Facts => ({ ...fresh(workers, partitions, Math.min(streams, partitions)), owners })),
  );

describe('a division', () => {
  it('gives each partition to one live worker, and the sizes of two shares differ by one at most', () => {
    fc.assert(
      fc.property(facts, (given) => {
        const divided = divide(given);
        expect(divided).toHaveLength(given.owners.length);
        for (const owner of divided) expect(given.workers).toContain(owner);
        const all = sizes({ ...given, owners: divided });
        expect(Math.max(...all) - Math.min(...all)).toBeLessThanOrEqual(1);
      }),
    );
  });

  it('moves as few partitions of live workers as an even division can', () => {
    fc.assert(
      fc.property(facts, (given) => {
        const { workers, owners } = given;
        const larger = owners.length % workers.length;
        const most = sizes(given)
          .toSorted((a, b) => b - a)
          .map((size, rank) => Math.min(size, Math.floor(owners.length / workers.length) + (rank < larger ? 1 : 0)))
          .reduce((sum, kept) => sum + kept, 0);
        const owned = owners.filter((owner) => owner !== null).length;
        expect(moved(given, divide(given))).toHaveLength(owned - most);
      }),
    );
  });

  it('moves only the partitions of a worker that leaves', () => {
    fc.assert(
      fc.property(facts, fc.nat(), (given, nth) => {
        fc.pre(given.workers.length > 1);
        const before = after(given);
        const gone = before.workers[nth % before.workers.length] ?? '';
        const left: Facts = {
          ...before,
          workers: before.workers.filter((worker) => worker !== gone),
          owners: before.owners.map((owner) => (owner === gone ? null : owner)),
        };
        expect(moved(left, divide(left))).toEqual([]);
      }),
    );
  });

  it('moves as many partitions as a worker that joins gets, all of them to that worker', () => {
    fc.assert(
      fc.property(facts, fc.constantFrom('a', 'w00', 'z'), (given, joiner) => {
        const before = after(given);
        const joined: Facts = { ...before, workers: [...before.workers, joiner].toSorted() };
        const divided = divide(joined);
        const got = [...divided.keys()].filter((partition) => divided[partition] === joiner);
        expect(moved(joined, divided)).toEqual(got);
        expect(got.length).toBe(Math.floor(divided.length / joined.workers.length));
      }),
    );
  });

  it('is the same when it is divided again', () => {
    fc.assert(
      fc.property(facts, (given) => {
        expect(divide(after(given))).toEqual(divide(given));
      }),
    );
  });

  it('is empty without a live worker', () => {
    expect(divide({ workers: [], owners: [null, null], streams: [0, 0] })).toEqual([]);
  });
});

describe('while partitions are released and claimed one by one', () => {
  /** Does some of the steps of a division: a partition that moves is released, and a free one is claimed. */
  const midway = (given: Facts, steps: readonly number[]): Facts => {
    const divided = divide(given);
    const owners = given.owners.map((owner, partition) => {
      if (owner === divided[partition] || steps[partition] === 0) return owner;
      return owner !== null && steps[partition] === 1 ? null : (divided[partition] ?? null);
    });
    return { ...given, owners };
  };
  const steps = fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 48, maxLength: 48 });

  it('the sizes of the shares stay the same', () => {
    fc.assert(
      fc.property(facts, steps, (given, some) => {
        expect(sizes(after(midway(given, some)))).toEqual(sizes(after(given)));
      }),
    );
  });

  it('the whole division of a log with one stream stays the same', () => {
    fc.assert(
      fc.property(facts, steps, (given, some) => {
        const one = { ...given, streams: given.owners.map(() => 0) };
        expect(divide(midway(one, some))).toEqual(divide(one));
      }),
    );
  });
});

describe('workers whose views of the records and of each other differ', () => {
  const schedule = fc.array(fc.record({ worker: fc.nat(), sees: fc.boolean(), writes: fc.nat({ max: 3 }) }), {
    maxLength: 60,
  });

  it('move as few partitions as one worker would that sees everything, if only the records are seen late', () => {
    fc.assert(
      fc.property(facts, schedule, (given, turns) => {
        const model = new WorkersModel(given);
        for (const { worker, sees, writes } of turns) model.turn(worker, { sees, writes });
        model.settle();
        expect(sizes({ ...given, owners: model.owners })).toEqual(sizes(after(given)));
        expect(model.released).toBe(moved(given, divide(given)).length);
        expect(model.takenOver).toBe(0);
      }),
    );
  });

  it('agree on an even division within three rounds after their views are right, and then stay with it', () => {
    fc.assert(
      fc.property(facts, schedule, fc.array(fc.array(fc.nat({ max: 3 }))), (given, turns, blind) => {
        const model = new WorkersModel(given);
        for (const [index, hidden] of blind.entries()) model.hide(index, hidden);
        for (const { worker, sees, writes } of turns) model.turn(worker, { sees, writes });
        model.showAll();
        model.rounds(3);
        const { owners } = model;
        const all = sizes({ ...given, owners });
        expect(owners).not.toContain(null);
        expect(Math.max(...all) - Math.min(...all)).toBeLessThanOrEqual(1);
        model.rounds(3);
        expect(model.owners).toEqual(owners);
      }),
    );
  });
});

describe('a log with several streams', () => {
  it('a first division gives workers ranges, so that few read a stream', () => {
    expect(divide(fresh(3, 8, 2))).toEqual(['w0', 'w0', 'w0', 'w2', 'w1', 'w1', 'w1', 'w2']);
    fc.assert(
      fc.property(facts, (given) => {
        const { workers, streams } = given;
        const first = { ...given, owners: given.owners.map(() => null) };
        expect(readers(after(first))).toBeLessThan(workers.length + new Set(streams).size);
      }),
    );
  });

  it('a worker that leaves and one that joins in its place leave each stream with the readers it had', () => {
    const before = after(fresh(8, 64, 8));
    expect(readers(before)).toBe(8);
    const left = after({
      ...before,
      workers: before.workers.filter((worker) => worker !== 'w3'),
      owners: before.owners.map((owner) => (owner === 'w3' ? null : owner)),
    });
    expect(readers(left)).toBeLessThanOrEqual(8 + 7);
    expect(readers(after({ ...left, workers: [...left.workers, 'w8'] }))).toBe(8);
  });

  it('workers that join one after the other read few of the streams, also after each was replaced', () => {
    let now = after(fresh(1, 256, 8));
    const join = (worker: string): void => {
      now = after({ ...now, workers: [...now.workers, worker].toSorted() });
    };
    for (let nth = 1; nth < 20; nth += 1) join(`w${nth}`);
    expect(readers(now) / 20).toBeLessThan(3.5);
    for (let nth = 0; nth < 20; nth += 1) {
      now = after({
        ...now,
        workers: now.workers.filter((worker) => worker !== `w${nth}`),
        owners: now.owners.map((owner) => (owner === `w${nth}` ? null : owner)),
      });
      join(`v${nth}`);
    }
    expect(readers(now) / 20).toBeLessThan(3.5);
  });

  it('a worker gives up partitions of the streams of which it has fewest', () => {
    const given: Facts = {
      workers: ['w0', 'w1'],
      owners: ['w0', 'w0', 'w0', 'w0', 'w0', 'w1'],
      streams: [0, 1, 1, 1, 0, 0],
    };
    expect(divide(given)).toEqual(['w1', 'w0', 'w0', 'w0', 'w1', 'w1']);
  });
});

describe('a division as workers of an older version make it', () => {
  it('deals the partitions of a log with one stream out in turn, and those of several in ranges', () => {
    expect(divideByIds(fresh(2, 5, 1))).toEqual(['w0', 'w1', 'w0', 'w1', 'w0']);
    expect(divideByIds(fresh(3, 8, 4))).toEqual(['w0', 'w0', 'w0', 'w1', 'w1', 'w1', 'w2', 'w2']);
    expect(divideByIds({ ...fresh(3, 8, 4), workers: [] })).toEqual([]);
  });
});
