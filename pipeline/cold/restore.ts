// Long job `restore`: brings the texts of an organization's days, or of some traces, back from cold
// storage to the tables that are read and searched. Takes days and traces; returns the numbers of
// found and restored texts. Guarantees: an object is restored only when it equals the verified one;
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

export interface RestoreDeps {
  cold: ColdStorage;
  tables: ColdTables;
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
    const { cold, retentionOf, now } = deps;
    const { job_id, org_id, progress, signal } = context;
    const args = restoreArgs.parse(context.args);
    await dropEndedTasks(deps, context);
    const { objects, unknown } = await objectsOf(deps, org_id, args);
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
    progress(0, objects.length);
    const how = { traceIds: args.trace_ids, task: `${TASK}${job_id}`, stampsOf };
    const done = (back: { days: number; found: number; restored: number }): void => {
      result.days += back.days;
      result.texts_found += back.found;
      result.texts_restored += back.restored;
      progress(result.days, objects.length);
    };
    await cold.restoreDays(objects, how, done, signal);
    // An object that was deleted meanwhile counts as done.
    progress(objects.length, objects.length);
    return result;
  };
}

/** Drops the staged texts of jobs that have ended. */
async function dropEndedTasks({ tables, openJobs }: RestoreDeps, { job_id }: LongJobContext): Promise<void> {
  const open = openJobs();
  for (const task of await tables.tasks()) {
    const id = task.startsWith(TASK) ? task.slice(TASK.length) : undefined;
    if (id !== undefined && (id === job_id || !open.has(id))) await tables.dropTask(task);
  }
}

/** Returns the objects that may contain the requested texts, by day. */
async function objectsOf(
  { cold, tables }: RestoreDeps,
  org_id: string,
  args: RestoreArgs,
): Promise<{ objects: ColdObject[]; unknown: number }> {
  const objects = await cold.objectsOf(org_id, { since: args.since_day, until: args.until_day });
  if (args.trace_ids === null) return { objects, unknown: 0 };
  const { traces, ranges } = await tables.daysOfTraces(org_id, args.trace_ids);
  return {
    objects: objects.filter(({ day }) => ranges.some(({ from, to }) => from <= day && day <= to)),
    unknown: args.trace_ids.length - traces,
  };
}
