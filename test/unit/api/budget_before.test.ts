// What the log held when a process began: it is known to have landed by what every partition says, and not waited for for ever.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Before, UNKNOWING_MS } from '../../../api/budgets/before.ts';

const report = (partition: number, read_through: number, behind = true) => ({ partition, read_through, behind });

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

test('an empty log holds nothing', async () => {
  const told = vi.fn();
  const before = new Before({ newest: 0, partitions: 2, onLanded: told });
  expect(before.landedAt).toBe(performance.now());
  await before.landed;
  expect(told).not.toHaveBeenCalled();
});

test('all of it has landed when each partition was read past it, or has nothing left', async () => {
  const told = vi.fn();
  const before = new Before({ newest: 10, partitions: 3, onLanded: told });
  before.heard([report(0, 9), report(1, 10), report(2, 3, false)]);
  expect(before.landedAt).toBeNull();
  before.heard([report(1, 4)]);
  expect(before.landedAt).toBeNull();
  vi.advanceTimersByTime(70);
  before.heard([report(0, 11)]);
  expect(before.landedAt).toBe(performance.now());
  await before.landed;
  vi.advanceTimersByTime(70);
  before.heard([report(0, 12, false), report(1, 12, false), report(2, 12, false)]);
  expect(before.landedAt).toBe(performance.now() - 70);
  expect(told).toHaveBeenCalledTimes(1);
});

test('nothing is waited for longer than its bound', () => {
  const before = new Before({ newest: 10, partitions: 1, onLanded: () => undefined });
  vi.advanceTimersByTime(UNKNOWING_MS - 1);
  expect(before.mayGuess).toBe(false);
  vi.advanceTimersByTime(1);
  expect([before.mayGuess, before.landedAt]).toEqual([true, null]);
});
