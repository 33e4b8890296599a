// Use in the log from before a process started: it is known once it has been counted or has landed,
// and waits for it are bounded.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Before, UNKNOWING_MS } from '../../../api/admission/budget/startup_backlog.ts';

const report = (partition: number, read_through: number, behind = true) => ({ partition, read_through, behind });

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

test('an empty log contains no use', async () => {
  const told = vi.fn();
  const before = new Before({ newest: 0, partitions: 2, onKnown: told });
  expect(before.knownAt).toBe(performance.now());
  await before.known;
  expect(told).not.toHaveBeenCalled();
});

test('all use has landed when each partition was read past it, or has nothing left', async () => {
  const told = vi.fn();
  const before = new Before({ newest: 10, partitions: 3, onKnown: told });
  before.heard([report(0, 9), report(1, 10), report(2, 3, false)]);
  expect(before.knownAt).toBeNull();
  before.heard([report(1, 4)]);
  expect(before.knownAt).toBeNull();
  vi.advanceTimersByTime(70);
  before.heard([report(0, 11)]);
  expect(before.knownAt).toBe(performance.now());
  await before.known;
  vi.advanceTimersByTime(70);
  before.heard([report(0, 12, false), report(1, 12, false), report(2, 12, false)]);
  expect(before.knownAt).toBe(performance.now() - 70);
  expect(told).toHaveBeenCalledTimes(1);
});

test('the use in a counted log is known before it has landed, and reported once', () => {
  const told = vi.fn();
  const before = new Before({ newest: 10, partitions: 1, onKnown: told });
  before.heard([report(0, 4)]);
  before.counted();
  expect(before.knownAt).toBe(performance.now());
  before.counted();
  before.heard([report(0, 10, false)]);
  expect(told).toHaveBeenCalledTimes(1);
});

test('no wait exceeds its bound', () => {
  const before = new Before({ newest: 10, partitions: 1, onKnown: () => undefined });
  vi.advanceTimersByTime(UNKNOWING_MS - 1);
  expect(before.mayGuess).toBe(false);
  vi.advanceTimersByTime(1);
  expect([before.mayGuess, before.knownAt]).toEqual([true, null]);
});
