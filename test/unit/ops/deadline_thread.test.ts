// Work in a thread under a deadline.
import { afterEach, describe, expect, it } from 'vitest';
import { DeadlineThread } from '../../../ops/platform/deadline_thread.ts';
import type { EndlessJob } from '../../support/endless_thread.ts';

const MODULE = new URL('../../support/endless_thread.ts', import.meta.url);
/** Far above what the jobs of these tests take, and far below the tests' own timeout. */
const AMPLE_MS = 60_000;

let thread = new DeadlineThread<EndlessJob, number>(MODULE);
afterEach(async () => {
  await thread.close();
  thread = new DeadlineThread(MODULE);
});

async function run(
  job: EndlessJob,
  { deadlineMs = AMPLE_MS, bytes = 1 } = {},
): Promise<{ how: string; parts: number[] }> {
  const parts: number[] = [];
  const { how } = await thread.run({ job, bytes, deadlineMs, onPart: (part) => parts.push(part) });
  return { how, parts };
}

describe('a job in a thread', () => {
  it('a job in a thread gives its parts in order and ends', async () => {
    expect(await run({ parts: 3, then: 'done' })).toEqual({ how: 'done', parts: [0, 1, 2] });
    expect(await run({ parts: 1, then: 'done' })).toEqual({ how: 'done', parts: [0] });
  });

  it('a job that never ends is ended by its deadline, keeps its finished parts, and leaves the next jobs a working thread', async () => {
    const endless = run({ parts: 2, then: 'endless' }, { deadlineMs: 200 });
    const next = run({ parts: 1, then: 'done' });
    expect(await endless).toEqual({ how: 'late', parts: [0, 1] });
    expect(await next).toEqual({ how: 'done', parts: [0] });
  }, 60_000);

  it('a job that kills its thread has failed, and the next one gets a new thread', async () => {
    // The last messages of a thread before it died may be lost.
    expect((await run({ parts: 1, then: 'dies' })).how).toBe('failed');
    expect(await run({ parts: 1, then: 'done' })).toEqual({ how: 'done', parts: [0] });
  }, 60_000);

  it('a job is rejected when the waiting jobs weigh too much', async () => {
    const running = run({ parts: 0, then: 'endless' }, { deadlineMs: 200 });
    const waiting = run({ parts: 0, then: 'done' }, { bytes: 64 * 1024 * 1024 });
    expect(await run({ parts: 1, then: 'done' })).toEqual({ how: 'refused', parts: [] });
    expect(await running).toEqual({ how: 'late', parts: [] });
    expect(await waiting).toEqual({ how: 'done', parts: [] });
  }, 60_000);

  it('a job has failed when the thread is closed, and none is accepted afterwards', async () => {
    const running = run({ parts: 0, then: 'endless' });
    const waiting = run({ parts: 0, then: 'done' });
    await thread.close();
    expect([(await running).how, (await waiting).how]).toEqual(['failed', 'failed']);
    expect((await run({ parts: 0, then: 'done' })).how).toBe('refused');
  });

  it('a job fails when the module of the thread cannot be loaded', async () => {
    thread = new DeadlineThread(new URL('./there_is_none.ts', import.meta.url));
    expect((await run({ parts: 0, then: 'done' })).how).toBe('failed');
  });
});
