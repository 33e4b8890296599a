// Work on one key waits for its turn, is bounded, and a failure affects no other work.
import { expect, test } from 'vitest';
import { Turns } from '../../../ops/platform/turns.ts';

test('work of one key runs in order of arrival and does not delay that of another', async () => {
  const turns = new Turns();
  const seen: string[] = [];
  const gate = Promise.withResolvers<undefined>();
  const first = turns.take('a', async () => {
    await gate.promise;
    seen.push('first');
  });
  const second = turns.take('a', () => {
    seen.push('second');
    return Promise.resolve();
  });
  await turns.take('b', () => {
    seen.push('other');
    return Promise.resolve();
  });
  gate.resolve(undefined);
  await Promise.all([first, second]);
  expect(seen).toEqual(['other', 'first', 'second']);
});

test('work that fails fails for its own caller only', async () => {
  const turns = new Turns();
  const failing = turns.take('a', () => Promise.reject(new Error('mine')));
  const after = turns.take('a', () => Promise.resolve('done'));
  await expect(failing).rejects.toThrow('mine');
  expect(await after).toBe('done');
});

test('work beyond the bound is rejected, and its room is released', async () => {
  const turns = new Turns();
  const gate = Promise.withResolvers<undefined>();
  const waiting = Array.from({ length: 500 }, () => turns.take('a', () => gate.promise));
  await expect(turns.take('a', () => Promise.resolve())).rejects.toThrow('too many');
  gate.resolve(undefined);
  await Promise.all(waiting);
  expect(await turns.take('a', () => Promise.resolve(1))).toBe(1);
});
