// Retention in several shards: what a run returns, and what it does when a shard fails. The runs of
// the shards are stand-ins.
import { expect, it } from 'vitest';
import { createLogger } from '../../../ops/platform/logger.ts';
import type { JobResult } from '../../../pipeline/jobs/job.ts';
import type { RetentionDeps } from '../../../pipeline/retention/retention.ts';
import { createRetentionOfShards } from '../../../pipeline/retention/retention_of_shards.ts';

const log = createLogger('test', 'silent');

/** Runs the job with a stand-in for each shard. */
function retire(runs: readonly (() => Promise<JobResult>)[], signal = new AbortController().signal) {
  const left = [...runs];
  const shards = runs.map((_, index) => ({ name: `s${index}`, deps: {} as RetentionDeps }));
  const runOf = () => left.shift() ?? (() => Promise.reject(new Error('more shards than runs')));
  return createRetentionOfShards(shards, runOf)({ now: 0, signal, log });
}

it('returns the sums of what the shards count', async () => {
  expect(
    await retire([
      () => Promise.resolve({ days_exported: 1, texts_dropped: 5 }),
      () => Promise.resolve({ days_exported: 2, texts_dropped: 0 }),
    ]),
  ).toEqual({ days_exported: 3, texts_dropped: 5 });
});

it('runs in the other shards when one fails, and then fails with the first error', async () => {
  const ran: number[] = [];
  const fails = (shard: number) => () => {
    ran.push(shard);
    return Promise.reject(new Error(`shard ${shard}`));
  };
  const succeeds = () => {
    ran.push(3);
    return Promise.resolve({});
  };
  await expect(retire([fails(1), fails(2), succeeds])).rejects.toThrow('shard 1');
  expect(ran).toEqual([1, 2, 3]);
});

it('runs in no other shard once the job must stop', async () => {
  const stop = new AbortController();
  let ran = 0;
  const stopped = () => {
    ran += 1;
    stop.abort(new Error('the job must stop'));
    return Promise.reject(new Error('in the middle of the run'));
  };
  await expect(retire([stopped, stopped], stop.signal)).rejects.toThrow('in the middle of the run');
  expect(ran).toBe(1);
});
