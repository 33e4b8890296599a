// Work in several shards of which some are slow.
import { describe, expect, it, vi } from 'vitest';
import { ShardSlow, ShardWaits } from '../../../pipeline/wiring/shard_waits.ts';

const a = { name: 'a' };
const b = { name: 'b' };

describe('ShardWaits', () => {
  it('resolves when all shards are done', async () => {
    const done: string[] = [];
    await new ShardWaits<{ name: string }>(false).all(
      new Map([
        [a, [1]],
        [b, [2]],
      ]),
      (shard, items) => {
        done.push(`${shard.name}${items.join()}`);
        return Promise.resolve();
      },
    );
    expect(done).toEqual(['a1', 'b2']);
  });

  it('rejects with what a shard rejects with', async () => {
    const work = () => Promise.reject(new Error('no fence'));
    await expect(new ShardWaits(false).all(new Map([[a, [1]]]), work)).rejects.toThrow('no fence');
  });

  it('waits for a slow shard for a time, and again with the next call, without beginning twice', async () => {
    vi.useFakeTimers();
    try {
      const waits = new ShardWaits<{ name: string }>(false);
      const slow = Promise.withResolvers<undefined>();
      const began: string[] = [];
      const work = (shard: { name: string }) => {
        began.push(shard.name);
        return shard === b ? slow.promise : Promise.resolve();
      };
      const both = new Map([
        [a, [1]],
        [b, [2]],
      ]);
      const first = expect(waits.all(both, work)).rejects.toThrow(ShardSlow);
      await vi.advanceTimersByTimeAsync(2000);
      await first;
      const second = waits.all(new Map([[b, [2, 3]]]), work);
      slow.resolve(undefined);
      // What the earlier call began had one item less, so the caller has to ask once more.
      await expect(second).rejects.toThrow(ShardSlow);
      expect(began).toEqual(['a', 'b']);
      await waits.all(new Map([[b, [2, 3]]]), work);
      expect(began).toEqual(['a', 'b', 'b']);
    } finally {
      vi.useRealTimers();
    }
  });

  it('waits as long as it takes where there is one shard only', async () => {
    vi.useFakeTimers();
    try {
      const slow = Promise.withResolvers<undefined>();
      let isDone = false;
      const all = new ShardWaits<{ name: string }>(true)
        .all(new Map([[a, [1]]]), () => slow.promise)
        .then(() => {
          isDone = true;
        });
      await vi.advanceTimersByTimeAsync(60_000);
      expect(isDone).toBe(false);
      slow.resolve(undefined);
      await all;
      expect(isDone).toBe(true);
    } finally {
      vi.useRealTimers();
    }
  });
});
