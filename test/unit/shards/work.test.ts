// Work in several shards of which some are slow.
import { expect, it, vi } from 'vitest';
import { ShardWork } from '../../../pipeline/wiring/shard_work.ts';

interface Named {
  name: string;
}
const a: Named = { name: 'a' };
const b: Named = { name: 'b' };
const both = new Map([
  [a, [1]],
  [b, [2, 3]],
]);

it('returns the items of all shards when all have done their work', async () => {
  const began: string[] = [];
  const done = await new ShardWork<Named>(false).run(both, (shard, items) => {
    began.push(`${shard.name}${items.join()}`);
    return Promise.resolve();
  });
  expect([began, done]).toEqual([
    ['a1', 'b2,3'],
    [1, 2, 3],
  ]);
});

it('throws what the work in a shard throws, and lets the shard work again', async () => {
  const work = new ShardWork<Named>(false);
  await expect(work.run(both, () => Promise.reject(new Error('no fence')))).rejects.toThrow('no fence');
  expect(await work.run(both, () => Promise.resolve())).toEqual([1, 2, 3]);
});

it('leaves a slow shard alone until it is done, also with other work, and does not wait for it again', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const work = new ShardWork<Named>(false);
    const slow = Promise.withResolvers<undefined>();
    const began: string[] = [];
    const run = (kind: string, hold: Promise<undefined> | null = null) =>
      work.run(both, (shard) => {
        began.push(`${kind} ${shard.name}`);
        return shard === b && hold !== null ? hold : Promise.resolve();
      });
    const first = run('release', slow.promise);
    await vi.advanceTimersByTimeAsync(2000);
    expect(await first).toEqual([1]);
    expect(await run('acquire')).toEqual([1]);
    slow.resolve(undefined);
    await vi.advanceTimersByTimeAsync(1);
    expect(await run('acquire')).toEqual([1, 2, 3]);
    expect(began).toEqual(['release a', 'release b', 'acquire a', 'acquire a', 'acquire b']);
  } finally {
    vi.useRealTimers();
  }
});

it('waits for a shard that is not free where work is not asked for again', async () => {
  const work = new ShardWork<Named>(false);
  const slow = Promise.withResolvers<undefined>();
  const began: string[] = [];
  const acquired = work.run(new Map([[b, [2, 3]]]), () => slow.promise);
  expect(await acquired).toEqual([]);
  const release = (shard: Named) => {
    began.push(shard.name);
    return Promise.resolve();
  };
  const released = work.run(both, release, true);
  await new Promise((resolve) => setImmediate(resolve));
  expect(began).toEqual(['a']);
  slow.resolve(undefined);
  expect(await released).toEqual([1, 2, 3]);
  expect(began).toEqual(['a', 'b']);
});

it('waits as long as it takes where there is one shard', async () => {
  const slow = Promise.withResolvers<undefined>();
  let isDone = false;
  const done = new ShardWork<Named>(true).run(new Map([[a, [1]]]), () => slow.promise);
  void done.then(() => (isDone = true));
  await new Promise((resolve) => setImmediate(resolve));
  expect(isDone).toBe(false);
  slow.resolve(undefined);
  expect(await done).toEqual([1]);
});
