// Restoring from cold storage, as long work: brings the texts of an org's days, or of some traces, back to where they are read and
// searched. In: days, traces. Out: what was found and put back. Guarantees: an object is put back only when it is the one that was
// verified; a text that is there already is left, so it may run again; restored texts stay as long as new ones would.
import { type RestoreArgs, restoreArgs } from '../../schemas/records/job_record.ts';
import type { RetentionPolicy } from '../../schemas/records/retention.ts';
import type { ColdObject, ColdTables } from '../../sql/cold.ts';
import { dateOf, dayOf } from '../domain/days.ts';
import type { LongJobContext, LongJobHandler } from '../long_jobs/runner.ts';
import { retentionClassDays } from '../stages/land/rows.ts';
import type { ColdStorage } from './cold_storage.ts';

const DATE_MAX_DAYS = 65_535;
const TASK = 'restore-';

export interface RestoreDeps {
  cold: ColdStorage;
  tables: ColdTables;
  retentionOf: (org_id: string) => RetentionPolicy;
  /** Ids of jobs that are not over. */
  openJobs: () => ReadonlySet<string>;
  /** Milliseconds since the epoch. */
  now: () => number;
}

/** Result: days that were read, texts found in them, texts put back, and traces that were asked for and are not the org's. */
export function createRestore(deps: RestoreDeps): LongJobHandler {
  return async (context) => {
    const { cold, retentionOf, now } = deps;
    const { job_id, org_id, progress, signal } = context;
    const args = restoreArgs.parse(context.args);
    await forgetDead(deps, context);
    const { days, unknown } = await daysOf(deps, org_id, args);
    const fullDays = retentionOf(org_id).telemetry_events.full_prompt_response_days;
    // A day that an operator retired ahead of its time counts from there, so that the next such run leaves it.
    const stampsOf = ({ dropped_as_of }: ColdObject) => {
      const restoredOn = Math.max(dayOf(now()), dropped_as_of);
      return { restoredOn, dropOn: Math.min(DATE_MAX_DAYS, restoredOn + retentionClassDays(fullDays)) };
    };
    const result = { days: 0, texts_found: 0, texts_restored: 0, ...(args.trace_ids === null ? {} : { unknown_trace_ids: unknown }) };
    progress(0, days.length);
    for (const [index, day] of days.entries()) {
      signal.throwIfAborted();
      const task = `${TASK}${job_id}-${dateOf(day)}`;
      const restored = await cold.restoreDay({ org_id, day }, args.trace_ids, task, stampsOf, signal);
      if (restored !== null) {
        result.days += 1;
        result.texts_found += restored.found;
        result.texts_restored += restored.restored;
      }
      progress(index + 1, days.length);
    }
    return result;
  };
}

/** Takes away what jobs that are over have left. */
async function forgetDead({ tables, openJobs }: RestoreDeps, { job_id }: LongJobContext): Promise<void> {
  const open = openJobs();
  for (const task of await tables.tasks()) {
    const id = task.startsWith(TASK) ? task.slice(TASK.length).split('-')[0] : undefined;
    if (id !== undefined && (id === job_id || !open.has(id))) await tables.dropTask(task);
  }
}

/** The days that have an object and may hold what is asked for. */
async function daysOf({ cold, tables }: RestoreDeps, org_id: string, args: RestoreArgs): Promise<{ days: number[]; unknown: number }> {
  const objects = await cold.objectsOf(org_id, { since: args.since_day, until: args.until_day });
  const days = objects.map(({ day }) => day);
  if (args.trace_ids === null) return { days, unknown: 0 };
  const { traces, ranges } = await tables.daysOfTraces(org_id, args.trace_ids);
  return {
    days: days.filter((day) => ranges.some(({ from, to }) => from <= day && day <= to)),
    unknown: args.trace_ids.length - traces,
  };
}
