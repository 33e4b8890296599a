// Long job `restore`: brings the texts of an organization's days, or of some traces, back from cold
// storage to the tables that are read and searched, in one shard after the other. Takes days and
// traces; returns the numbers of found and restored texts. Guarantees: an object is restored only when it equals the verified one;
// a text that is present already is skipped, so the job may run again; restored texts are retained
// as long as new ones.
import { type RestoreArgs, restoreArgs } from '../../schemas/records/job_record.ts';
import type { RetentionPolicy } from '../../schemas/records/retention.ts';
import type { ColdObject, ColdTables } from '../../sql/stores/cold.ts';
import { dayOf } from '../domain/time/days.ts';
import type { LongJobContext, LongJobHandler } from '../jobs/long_jobs.ts';
import { retentionClassDays } from '../landing/row_encoders.ts';
import type { ColdStorage } from './cold_storage.ts';

const DATE_MAX_DAYS = 65_535;
const TASK = 'restore-';

/** Cold storage of a shard. */
export interface ColdShard {
  cold: ColdStorage;
  tables: ColdTables;
}

export interface RestoreDeps {
  shards: readonly ColdShard[];
  retentionOf: (org_id: string) => RetentionPolicy;
  /** Returns the ids of jobs that have not ended. */
  openJobs: () => ReadonlySet<string>;
  /** Milliseconds since the epoch. */
  now: () => number;
}

/**
 * Creates the handler of the job. Its result counts the days read, the texts found and restored,
 * and the requested traces that the organization does not have.
 */
export function createRestore(deps: RestoreDeps): LongJobHandler {
  return async (context) => {
    const { retentionOf, now } = deps;
    const { job_id, org_id, progress, signal } = context;
    const args = restoreArgs.parse(context.args);
    await dropEndedTasks(deps, context);
    const { found, total, unknown } = await objectsOf(deps, org_id, args);
    const fullDays = retentionOf(org_id).telemetry_events.full_prompt_response_days;
    // A day that retention exported early, at an operator's request, counts from that instant, so
    // that the next such run leaves it.
    const stampsOf = ({ dropped_as_of }: ColdObject) => {
      const restoredOn = Math.max(dayOf(now()), dropped_as_of);
      return { restoredOn, dropOn: Math.min(DATE_MAX_DAYS, restoredOn + retentionClassDays(fullDays)) };
    };
    const result = {
      days: 0,
      texts_found: 0,
      texts_restored: 0,
      ...(args.trace_ids === null ? {} : { unknown_trace_ids: unknown }),
    };
    progress(0, total);
    const how = { traceIds: args.trace_ids, task: `${TASK}${job_id}`, stampsOf };
    const done = (back: { days: number; found: number; restored: number }): void => {
      result.days += back.days;
      result.texts_found += back.found;
      result.texts_restored += back.restored;
      progress(result.days, total);
    };
    for (const { cold, objects } of found) await cold.restoreDays(objects, how, done, signal);
    // An object that was deleted meanwhile counts as done.
    progress(total, total);
    return result;
  };
}

/** Drops the staged texts of jobs that have ended. */
async function dropEndedTasks({ shards, openJobs }: RestoreDeps, { job_id }: LongJobContext): Promise<void> {
  const open = openJobs();
  for (const { tables } of shards)
    for (const task of await tables.tasks()) {
      const id = task.startsWith(TASK) ? task.slice(TASK.length) : undefined;
      if (id !== undefined && (id === job_id || !open.has(id))) await tables.dropTask(task);
    }
}

/** Objects of a shard that may contain requested texts, by day. */
interface ShardObjects {
  cold: ColdStorage;
  objects: ColdObject[];
}

/**
 * Returns the objects that may contain the requested texts, by shard, their total number, and the
 * number of requested traces that no shard has.
 */
async function objectsOf(
  { shards }: RestoreDeps,
  org_id: string,
  args: RestoreArgs,
): Promise<{ found: ShardObjects[]; total: number; unknown: number }> {
  const found: ShardObjects[] = [];
  let known = 0;
  for (const { cold, tables } of shards) {
    const objects = await cold.objectsOf(org_id, { since: args.since_day, until: args.until_day });
    if (args.trace_ids === null) {
      found.push({ cold, objects });
      continue;
    }
    // A trace is in one shard.
    const { traces, ranges } = await tables.daysOfTraces(org_id, args.trace_ids);
    known += traces;
    found.push({
      cold,
      objects: objects.filter(({ day }) => ranges.some(({ from, to }) => from <= day && day <= to)),
    });
  }
  const total = found.reduce((sum, { objects }) => sum + objects.length, 0);
  return { found, total, unknown: args.trace_ids === null ? 0 : args.trace_ids.length - known };
}
