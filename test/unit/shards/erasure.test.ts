// The traces that an erasure records in each of several shards, also if it was interrupted at any of its
// statements. The shards are stand-ins that hold traces in memory.
import { expect, it } from 'vitest';
import type { ErasureStore } from '../../../sql/stores/erasure.ts';
import { ErasureOfShards } from '../../../sql/stores/erasure_of_shards.ts';

const SCOPE = { org_id: 'org_a', job_id: 'job_1' };
const MATCH = { attribute: 'user_id', values: ['ann'] };

interface Held {
  matches: string[];
  /** Trace that a trace of the shard replays, by the trace. */
  replays: Record<string, string>;
}

class Statements {
  left = Infinity;
  made: string[] = [];

  /** Counts a statement. @throws Error where the erasure is interrupted */
  make(name: string): void {
    if (this.left-- <= 0) throw new Error('interrupted');
    this.made.push(name);
  }
}

/** Returns a shard, and the traces that it records. */
function aShard(held: Held, statements: Statements) {
  const recorded = new Set<string>();
  const record = (names: Iterable<string>): void => {
    for (const name of names) recorded.add(name);
  };
  const does = <T>(name: string, what: () => T): Promise<T> =>
    new Promise((resolve) => {
      statements.make(name);
      resolve(what());
    });
  const own = () => [...new Set([...held.matches, ...Object.keys(held.replays)])].filter((name) => recorded.has(name));
  const store: Partial<ErasureStore> = {
    collectMatches: () =>
      does('matches', () => {
        record(held.matches);
      }),
    collectReplays: () =>
      does('replays', () => {
        for (let before = -1; before < recorded.size;) {
          before = recorded.size;
          record(Object.keys(held.replays).filter((name) => recorded.has(held.replays[name] ?? '')));
        }
      }),
    collectCounts: () => does('counts', () => undefined),
    traceCount: () => does('count', () => recorded.size),
    traces: (_scope, after) =>
      does('page', () =>
        [...recorded]
          .sort()
          .filter((name) => name > after)
          .slice(0, 10),
      ),
    add: (_scope, names) =>
      does('add', () => {
        record(names);
      }),
    found: () => does('found', () => new Map([['spans', own().length]])),
    jobs: () => Promise.resolve(['job_1', `job_of_${held.matches.join()}`]),
  };
  return { store: store as ErasureStore, recorded };
}

/** A chain of replays that crosses the shards at each step, and traces that are not meant. */
const CHAIN: Held[] = [
  { matches: ['t_0', 'u_0'], replays: { t_2: 't_1', t_4: 't_3', other_1: 'other_0' } },
  { matches: [], replays: { t_3: 't_2', t_5: 't_4', v_1: 'v_0' } },
  { matches: ['v_0'], replays: { t_1: 't_0' } },
];
const MEANT = ['t_0', 't_1', 't_2', 't_3', 't_4', 't_5', 'u_0', 'v_0', 'v_1'];

function aStore(held: readonly Held[]) {
  const statements = new Statements();
  const shards = held.map((one) => aShard(one, statements));
  const recorded = () => shards.map((shard) => [...shard.recorded].sort());
  return { store: new ErasureOfShards(shards.map((shard) => shard.store)), recorded, statements };
}

it('records the traces of all shards in each of them, with replays of replays in other shards', async () => {
  const { store, recorded } = aStore(CHAIN);
  await store.collect(SCOPE, MATCH);
  expect(recorded()).toEqual([MEANT, MEANT, MEANT]);
  expect(await store.traceCount(SCOPE)).toBe(MEANT.length);
  expect(await store.found(SCOPE)).toEqual(new Map([['spans', MEANT.length]]));
  expect(await store.jobs()).toEqual(['job_1', 'job_of_t_0,u_0', 'job_of_', 'job_of_v_0']);
});

it('records the same traces when it is repeated after an interruption at any statement', async () => {
  const whole = aStore(CHAIN);
  await whole.store.collect(SCOPE, MATCH);
  const all = whole.statements.made.length;
  for (let left = 0; left < all; left++) {
    const { store, recorded, statements } = aStore(CHAIN);
    statements.left = left;
    await expect(store.collect(SCOPE, MATCH)).rejects.toThrow('interrupted');
    statements.left = Infinity;
    await store.collect(SCOPE, MATCH);
    expect([left, ...recorded()]).toEqual([left, MEANT, MEANT, MEANT]);
  }
});

it('copies nothing where there is one shard', async () => {
  const { store, statements } = aStore(CHAIN.slice(0, 1));
  await store.collect(SCOPE, MATCH);
  expect(statements.made).toEqual(['matches', 'replays', 'counts']);
});
