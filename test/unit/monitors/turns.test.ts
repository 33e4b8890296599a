// Order and bounds of the tasks of monitors.
import { expect, it } from 'vitest';
import { inTurns } from '../../../pipeline/monitors/turns.ts';

const tasksOf = (...counts: [string, number][]) =>
  counts.flatMap(([org_id, count]) => Array.from({ length: count }, (_, serial) => ({ org_id, serial })));

it('takes organizations in turns, and runs a bounded number at a time of each and in all', async () => {
  const begun: string[] = [];
  const running = new Map<string, number>();
  let most = 0;
  const left = await inTurns(
    tasksOf(['a', 5], ['b', 2], ['c', 1]),
    { atOnce: 3, orgAtOnce: 2, signal: new AbortController().signal },
    async ({ org_id, serial }) => {
      begun.push(`${org_id}${serial}`);
      running.set(org_id, (running.get(org_id) ?? 0) + 1);
      expect(running.get(org_id)).toBeLessThanOrEqual(2);
      most = Math.max(
        most,
        [...running.values()].reduce((sum, count) => sum + count, 0),
      );
      await new Promise((resolve) => setImmediate(resolve));
      running.set(org_id, (running.get(org_id) ?? 0) - 1);
    },
  );
  expect([left, most, begun.length]).toEqual([0, 3, 8]);
  expect(begun.slice(0, 3)).toEqual(['a0', 'b0', 'c0']);
  expect(begun.filter((one) => one.startsWith('a'))).toEqual(['a0', 'a1', 'a2', 'a3', 'a4']);
});

it('begins no task after the abort, and returns how many are left', async () => {
  const stop = new AbortController();
  const left = await inTurns(tasksOf(['a', 5]), { atOnce: 1, orgAtOnce: 1, signal: stop.signal }, ({ serial }) => {
    if (serial === 1) stop.abort();
    return Promise.resolve();
  });
  expect(left).toBe(3);
});
