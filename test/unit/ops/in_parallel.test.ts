// Tasks beside each other: how many, in which order, and what a failure stops.
import { expect, it } from 'vitest';
import { inParallel } from '../../../ops/platform/in_parallel.ts';

it('runs each task once, in order, and no more at a time than asked', async () => {
  const [began, ended]: [number[], number[]] = [[], []];
  let most = 0;
  await inParallel([1, 2, 3, 4, 5, 6, 7], 3, async (item) => {
    began.push(item);
    most = Math.max(most, began.length - ended.length);
    await Promise.resolve();
    ended.push(item);
  });
  expect(began).toEqual([1, 2, 3, 4, 5, 6, 7]);
  expect(ended.toSorted()).toEqual(began);
  expect(most).toBe(3);
  await inParallel([], 3, () => Promise.reject(new Error('there is no item')));
});

it('starts nothing after a failure, waits for what runs, and throws the first failure', async () => {
  const other = Promise.withResolvers<undefined>();
  const seen: number[] = [];
  let over = false;
  const run = inParallel([1, 2, 3, 4], 2, async (item) => {
    seen.push(item);
    if (item === 1) throw new Error('one');
    await other.promise;
  }).finally(() => (over = true));
  await new Promise(setImmediate);
  expect(over).toBe(false);
  other.resolve(undefined);
  await expect(run).rejects.toThrow('one');
  expect(seen).toEqual([1, 2]);
});

it('starts nothing after an abort, and throws its reason', async () => {
  const abort = new AbortController();
  const seen: number[] = [];
  const run = inParallel(
    [1, 2, 3],
    1,
    (item) => {
      seen.push(item);
      abort.abort(new Error('over'));
      return Promise.resolve();
    },
    abort.signal,
  );
  await expect(run).rejects.toThrow('over');
  expect(seen).toEqual([1]);
});
