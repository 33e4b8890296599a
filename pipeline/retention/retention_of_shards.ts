// Retention of a store with several shards: the job runs in one shard after the other, each with its
// own tables and its own part of cold storage. Takes the dependencies of each shard; returns the
// sums of their results. If a shard fails, the job still runs in the others, and then fails with the
// error of the first one that failed.
import type { JobContext, JobResult } from '../jobs/job.ts';
import { createRetention, type RetentionDeps } from './retention.ts';

export interface ShardRetention {
  /** Name of the shard; empty for the only one. */
  name: string;
  deps: RetentionDeps;
}

/**
 * Creates the run of the job.
 * @param runOf creates the run of one shard; for tests
 */
export function createRetentionOfShards(
  shards: readonly ShardRetention[],
  runOf: (deps: RetentionDeps) => (context: JobContext) => Promise<JobResult> = createRetention,
): (context: JobContext) => Promise<JobResult> {
  const runs = shards.map(({ name, deps }) => ({ name, run: runOf(deps) }));
  return async (context) => {
    const { signal, log } = context;
    const sums: JobResult = {};
    const errors: unknown[] = [];
    for (const { name, run } of runs) {
      signal.throwIfAborted();
      try {
        addCounts(sums, await run(context));
      } catch (error) {
        if (signal.aborted) throw error;
        errors.push(error);
        if (runs.length > 1) log.error({ err: error, shard: name }, 'retention failed in this shard');
      }
    }
    if (errors.length > 0) throw errors[0];
    return sums;
  };
}

function addCounts(sums: JobResult, counts: JobResult): void {
  for (const [name, count] of Object.entries(counts)) sums[name] = Number(sums[name] ?? 0) + Number(count);
}
