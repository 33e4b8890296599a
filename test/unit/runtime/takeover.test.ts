// Bringing up the partitions that a worker has claimed.
import { expect, it } from 'vitest';
import type { PartitionRecord } from '../../../schemas/records/partition.ts';
import type { PartitionHistory, PartitionState } from '../../../pipeline/worker/partition_state.ts';
import { takeOver, type TakeoverDeps } from '../../../pipeline/worker/takeover.ts';
import { noUsage } from '../../../pipeline/domain/budgets/usage.ts';

const record = (partition: number, epoch: number): PartitionRecord => ({
  partition,
  owner: 'w1',
  epoch,
  checkpoint: 7,
  completed_through: 5,
  at: '',
});

const partitionsOf = (records: readonly PartitionRecord[]): string =>
  records.map(({ partition }) => partition).join(' ');
const noHistory = (): PartitionHistory => ({
  spans: new Set(),
  texts: new Set(),
  usage_through: 0,
  decided: new Map(),
  traces: [],
});
/** Resolves once everything that can go on without waiting has gone on. */
const turns = (): Promise<unknown> => new Promise((resolve) => setImmediate(resolve));

/** Partitions owned at an epoch; `effects` names what was done, in order. */
function aTakeover(owned: Map<number, number>): { deps: TakeoverDeps; effects: string[] } {
  const states = new Map<number, PartitionState>();
  const effects: string[] = [];
  const deps: TakeoverDeps = {
    ownership: {
      isOwner: (partition) => owned.has(partition),
      epochOf: (partition) => owned.get(partition),
      formerOf: () => null,
      isLive: () => true,
    },
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
      recall: (records) => {
        effects.push(`recall ${partitionsOf(records)}`);
        return Promise.resolve();
      },
      newestTraces: () => Promise.resolve([]),
      histories: (records) => {
        effects.push(`read ${partitionsOf(records)}`);
        return Promise.resolve(new Map(records.map(({ partition }) => [partition, noHistory()])));
      },
    },
    history: { logBase: 0, windowMs: 1000, tail: false },
    partitions: 2,
    graceMs: 100,
    idleMs: 1000,
    findCalls: () => Promise.resolve([]),
    isJudged: () => false,
  };
  return { deps, effects };
}

it('raises the fences before it reads what former owners may still write, in one statement each for all partitions', async () => {
  const { deps, effects } = aTakeover(
    new Map([
      [0, 3],
      [1, 4],
    ]),
  );
  const fence = Promise.withResolvers<undefined>();
  const { raise } = deps.fences;
  deps.fences.raise = async (pairs) => {
    await raise(pairs);
    await fence.promise;
  };
  const taken = takeOver(deps, [record(0, 3), record(1, 4)]);
  await turns();
  expect(effects).toEqual(['fence 0:3 1:4', 'recall 0 1']);
  fence.resolve(undefined);
  await taken;
  expect(effects.slice(2)).toEqual(['read 0 1', 'add 0 at 3 from 7', 'add 1 at 4 from 7']);
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
  expect(effects).toEqual(['fence 1:4', 'recall 1', 'read 1', 'add 1 at 4 from 7']);
});

it.each(['recall', 'newestTraces', 'histories'] as const)(
  'adds no partition when %s fails, and all of them at the next call',
  async (method) => {
    const { deps, effects } = aTakeover(new Map([[0, 3]]));
    const { store } = deps;
    deps.store = { ...store, [method]: () => Promise.reject(new Error('away')) };
    await expect(takeOver(deps, [record(0, 3)])).rejects.toThrow('away');
    expect(effects.filter((effect) => effect.startsWith('add'))).toEqual([]);
    deps.store = store;
    await takeOver(deps, [record(0, 3)]);
    expect(effects.at(-1)).toBe('add 0 at 3 from 7');
  },
);

it('recalls the calls of open traces that landed up to the checkpoint, so that the store is not asked for them again', async () => {
  const { deps } = aTakeover(new Map([[0, 3]]));
  const trace = { partition: 0, org_id: 'org_a', trace_id: 't1' };
  deps.store.newestTraces = () => Promise.resolve([trace, { ...trace, trace_id: 't2' }]);
  const asked: unknown[] = [];
  const usage = noUsage({ ...trace, agent_id: '', model: '', department: '', realm: '', hour: 0, day: 0 });
  deps.findCalls = (places) => {
    asked.push(...places);
    return Promise.resolve([{ ...trace, log_seq: 1, span_id: 's1', source: 'otlp', ids: ['id 1'], usage }]);
  };
  await takeOver(deps, [record(0, 3)]);
  expect(asked).toEqual([
    { ...trace, log_seq: 8 },
    { ...trace, trace_id: 't2', log_seq: 8 },
  ]);
  const calls = deps.states.get(0)?.calls;
  const stored = { mayBeStored: () => true, remembers: () => true };
  const places = ['t1', 't2', 't3'].map((trace_id) => ({ org_id: 'org_a', trace_id, log_seq: 9 }));
  expect(places.map((place) => calls?.needsStore(place, stored))).toEqual([false, false, true]);
  const repeated = { span_id: 's2', source: 'agent', ids: ['id 1'], usage };
  expect(calls?.take({ org_id: 'org_a', trace_id: 't1', log_seq: 9 }, repeated).duplicate_of).toBe('s1');
});

it('ends only when the other read has ended too, when one fails', async () => {
  const { deps } = aTakeover(new Map([[0, 3]]));
  const recalled = Promise.withResolvers<undefined>();
  deps.store = {
    ...deps.store,
    recall: () => recalled.promise,
    histories: () => Promise.reject(new Error('away')),
  };
  let ended = false;
  const taken = takeOver(deps, [record(0, 3)]).finally(() => {
    ended = true;
  });
  taken.catch(() => undefined);
  await turns();
  expect(ended).toBe(false);
  recalled.resolve(undefined);
  await expect(taken).rejects.toThrow('away');
});

it('adds no partition that another worker took over while its history was read', async () => {
  const owned = new Map([[0, 3]]);
  const { deps, effects } = aTakeover(owned);
  deps.store.histories = () => {
    owned.delete(0);
    return Promise.resolve(new Map([[0, noHistory()]]));
  };
  await takeOver(deps, [record(0, 3)]);
  expect(effects).toEqual(['fence 0:3', 'recall 0']);
});
