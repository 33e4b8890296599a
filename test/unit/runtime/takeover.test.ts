// Bringing up the partitions that a worker has claimed.
import { expect, it } from 'vitest';
import type { PartitionRecord } from '../../../schemas/records/partition.ts';
import type { PartitionState } from '../../../pipeline/worker/partition_state.ts';
import { takeOver, type TakeoverDeps } from '../../../pipeline/worker/takeover.ts';

const record = (partition: number, epoch: number): PartitionRecord => ({
  partition,
  owner: 'w1',
  epoch,
  checkpoint: 7,
  completed_through: 5,
  at: '',
});

/** Partitions owned at an epoch; `effects` names what was done, in order. */
function aTakeover(owned: Map<number, number>): { deps: TakeoverDeps; effects: string[] } {
  const states = new Map<number, PartitionState>();
  const effects: string[] = [];
  const deps: TakeoverDeps = {
    ownership: { isOwner: (partition) => owned.has(partition), epochOf: (partition) => owned.get(partition) },
    states,
    worker: {
      add: (added) => {
        for (const state of added) states.set(state.partition, state);
        effects.push(...added.map((state) => `add ${state.partition} at ${state.epoch} from ${state.taken_through}`));
      },
    },
    fences: {
      raise: (pairs) => {
        effects.push(`fence ${pairs.map((pair) => pair.join(':')).join(' ')}`);
        return Promise.resolve();
      },
    },
    store: {
      partitionHistory: ({ partition }) => {
        effects.push(`read ${partition}`);
        return Promise.resolve({
          spans: new Set(),
          texts: new Set(),
          usage_through: 0,
          decided: new Map(),
          traces: [],
        });
      },
    },
    history: { logBase: 0, windowMs: 1000, tail: false },
    partitions: 2,
    graceMs: 100,
    idleMs: 1000,
    isJudged: () => false,
  };
  return { deps, effects };
}

it('raises the fences of all partitions before it reads their histories, and reads the log from their checkpoints', async () => {
  const { deps, effects } = aTakeover(
    new Map([
      [0, 3],
      [1, 4],
    ]),
  );
  await takeOver(deps, [record(0, 3), record(1, 4)]);
  expect(effects).toEqual(['fence 0:3 1:4', 'read 0', 'read 1', 'add 0 at 3 from 7', 'add 1 at 4 from 7']);
});

it('leaves a partition alone that is up under its epoch, when it is called again after a failure', async () => {
  const { deps, effects } = aTakeover(
    new Map([
      [0, 3],
      [1, 4],
    ]),
  );
  await takeOver(deps, [record(0, 3)]);
  effects.length = 0;
  await takeOver(deps, [record(0, 3), record(1, 4)]);
  expect(effects).toEqual(['fence 1:4', 'read 1', 'add 1 at 4 from 7']);
});

it('adds the partitions whose history was read, when that of another fails', async () => {
  const owned = new Map(Array.from({ length: 9 }, (_, partition) => [partition, 3] as const));
  const { deps, effects } = aTakeover(owned);
  const { store } = deps;
  deps.store = {
    partitionHistory: (read, ...rest) =>
      read.partition === 2 ? Promise.reject(new Error('away')) : store.partitionHistory(read, ...rest),
  };
  await expect(
    takeOver(
      deps,
      [...owned.keys()].map((partition) => record(partition, 3)),
    ),
  ).rejects.toThrow('away');
  expect(effects.filter((effect) => effect.startsWith('add'))).toHaveLength(8);
});

it('adds no partition that another worker took over while its history was read', async () => {
  const owned = new Map([[0, 3]]);
  const { deps, effects } = aTakeover(owned);
  deps.store = {
    partitionHistory: () => {
      owned.delete(0);
      return Promise.resolve({ spans: new Set(), texts: new Set(), usage_through: 0, decided: new Map(), traces: [] });
    },
  };
  await takeOver(deps, [record(0, 3)]);
  expect(effects).toEqual(['fence 0:3']);
});
