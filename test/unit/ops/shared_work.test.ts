// Several callers share one run of the same work: it outlives each of them alone, and nothing is kept after its end.
import { expect, it } from 'vitest';
import { SharedWork } from '../../../ops/platform/shared_work.ts';

const NEVER = new AbortController().signal;

/** Returns work that ends when the test says so, with what is known of each of its runs. */
function aWork() {
  const runs: { signal: AbortSignal; end: (value: string) => void; fail: (error: Error) => void }[] = [];
  const work = (signal: AbortSignal): Promise<string> =>
    new Promise((end, fail) => {
      runs.push({ signal, end, fail });
    });
  return { runs, work };
}

it('runs once for callers that ask at the same time, and again for one that asks after the end', async () => {
  const [shared, { runs, work }] = [new SharedWork<string>(9), aWork()];
  const [first, second] = [shared.run('a', NEVER, work), shared.run('a', NEVER, work)];
  expect([first.joined, second.joined, runs.length]).toEqual([false, true, 1]);
  runs[0]?.end('found');
  expect(await Promise.all([first.result, second.result])).toEqual(['found', 'found']);
  const later = shared.run('a', NEVER, work);
  runs[1]?.end('found again');
  expect([later.joined, await later.result]).toEqual([false, 'found again']);
});

it('runs apart under different keys', () => {
  const [shared, { runs, work }] = [new SharedWork<string>(9), aWork()];
  expect([shared.run('a', NEVER, work).joined, shared.run('b', NEVER, work).joined, runs.length]).toEqual([
    false,
    false,
    2,
  ]);
});

it.each([0, 1])('gives the others the result when caller %i leaves', async (leaving) => {
  const [shared, { runs, work }] = [new SharedWork<string>(9), aWork()];
  const callers = [new AbortController(), new AbortController()];
  const results = callers.map(({ signal }) => shared.run('a', signal, work).result);
  callers[leaving]?.abort(new Error('disconnected'));
  await expect(results[leaving]).rejects.toThrow('disconnected');
  expect(runs.map(({ signal }) => signal.aborted)).toEqual([false]);
  runs[0]?.end('found');
  expect(await results[1 - leaving]).toBe('found');
});

it('aborts the work once all callers have left, and starts anew for the next one', async () => {
  const [shared, { runs, work }] = [new SharedWork<string>(9), aWork()];
  const callers = [new AbortController(), new AbortController()];
  const results = callers.map(({ signal }) => shared.run('a', signal, work).result);
  for (const caller of callers) caller.abort(new Error('disconnected'));
  for (const result of results) await expect(result).rejects.toThrow('disconnected');
  expect(runs[0]?.signal.reason).toEqual(new Error('disconnected'));
  const next = shared.run('a', NEVER, work);
  expect([next.joined, runs.length]).toEqual([false, 2]);
  // The end of the aborted work does not take the place of the work that runs now.
  runs[0]?.fail(new Error('aborted'));
  await new Promise((resolve) => setImmediate(resolve));
  expect(shared.run('a', NEVER, work).joined).toBe(true);
  runs[1]?.end('found');
  expect(await next.result).toBe('found');
});

it('fails for all callers, and is tried again by the next one', async () => {
  const [shared, { runs, work }] = [new SharedWork<string>(9), aWork()];
  const results = [shared.run('a', NEVER, work).result, shared.run('a', NEVER, work).result];
  runs[0]?.fail(new Error('the store is away'));
  for (const result of results) await expect(result).rejects.toThrow('the store is away');
  const next = shared.run('a', NEVER, work);
  runs[1]?.end('found');
  expect(await next.result).toBe('found');
});

it('runs the work apart for a caller beyond the bound', async () => {
  const [shared, { runs, work }] = [new SharedWork<string>(2), aWork()];
  const results = [0, 1, 2].map(() => shared.run('a', NEVER, work).result);
  expect(runs).toHaveLength(2);
  for (const [index, { end }] of runs.entries()) end(String(index));
  expect(await Promise.all(results)).toEqual(['0', '0', '1']);
});

it('starts nothing for a caller that has left before', async () => {
  const [shared, { runs, work }] = [new SharedWork<string>(9), aWork()];
  await expect(shared.run('a', AbortSignal.abort(new Error('disconnected')), work).result).rejects.toThrow(
    'disconnected',
  );
  expect(runs).toHaveLength(0);
});
