// What the log held when a process began: known once it has been counted or has landed, and waited for within a bound.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { StartupBarrier, UNKNOWING_MS } from '../../../api/admission/budget/startup_barrier.ts';

/** The newest message of each of some partitions is at position 10. */
const newestOf = (partitions: number) => new Map(Array.from({ length: partitions }, (_, partition) => [partition, 10]));
const report = (partition: number, read_through: number, behind = true) => ({ partition, read_through, behind });

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

test('an empty log holds nothing', async () => {
  const told = vi.fn();
  const barrier = new StartupBarrier({ newest: new Map(), onKnown: told });
  expect(barrier.knownAt).toBe(performance.now());
  await barrier.known;
  expect(told).not.toHaveBeenCalled();
});

test('all of it has landed when each partition was read past it, or has nothing left', async () => {
  const told = vi.fn();
  const barrier = new StartupBarrier({ newest: newestOf(3), onKnown: told });
  barrier.heard([report(0, 9), report(1, 10), report(2, 3, false)]);
  expect(barrier.knownAt).toBeNull();
  barrier.heard([report(1, 4)]);
  expect(barrier.knownAt).toBeNull();
  vi.advanceTimersByTime(70);
  barrier.heard([report(0, 11)]);
  expect(barrier.knownAt).toBe(performance.now());
  await barrier.known;
  vi.advanceTimersByTime(70);
  barrier.heard([report(0, 12, false), report(1, 12, false), report(2, 12, false)]);
  expect(barrier.knownAt).toBe(performance.now() - 70);
  expect(told).toHaveBeenCalledTimes(1);
});

test('a log that has been counted is known before it has landed, and reported once', () => {
  const told = vi.fn();
  const barrier = new StartupBarrier({ newest: newestOf(1), onKnown: told });
  barrier.heard([report(0, 4)]);
  barrier.counted();
  expect(barrier.knownAt).toBe(performance.now());
  barrier.counted();
  barrier.heard([report(0, 10, false)]);
  expect(told).toHaveBeenCalledTimes(1);
});

test('nothing is waited for longer than its bound', () => {
  const barrier = new StartupBarrier({ newest: newestOf(1), onKnown: () => undefined });
  vi.advanceTimersByTime(UNKNOWING_MS - 1);
  expect(barrier.mayGuess).toBe(false);
  vi.advanceTimersByTime(1);
  expect([barrier.mayGuess, barrier.knownAt]).toEqual([true, null]);
});
