// Job `retention`: deletes, as of an instant, what is too old by each organization's policy. It
// reads the current policies (the day stamped on a row when it landed is only a hint for
// partitions), so a change can be reverted until the job runs:
// - texts past full_prompt_response_days move to cold storage, one verified object per organization
//   and day, and only then are dropped;
// - attributes past metadata_only_days are emptied;
// - rows past delete_after_days are deleted, and objects of cold storage with them.
//
// Guarantees: the job drops exactly the texts that are in a verified object. A day whose object is
// missing or corrupt stays as it is, and fails the job after everything else is done. An
// unavailable object store ends the job before anything is dropped. After a crash at any point the
// next run completes the work; repeating a run changes nothing. It runs in one shard
// (retention_of_shards.ts).
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ColdTables, DueDay } from '../../sql/stores/cold.ts';
import {
  canBeDue,
  type Condition,
  type CutoffParams,
  dueBy,
  dueByKey,
  type Removed,
  type RetentionStore,
  tracesDueBy,
} from '../../sql/stores/retention.ts';
import type { ColdStorage, ExportOutcome } from '../cold/cold_storage.ts';
import { ColdDataError } from '../cold/local_file.ts';
import { dayOf } from '../domain/time/days.ts';
import { type CutoffRange, cutoffRanges, type RetainedKind, type OrgPolicy } from '../domain/traces/retention.ts';
import type { JobContext, JobResult } from '../jobs/job.ts';
import { CLEARED_COLUMNS, DELETED_TABLES, type DeletedTable } from './tables.ts';

export const RETENTION = 'retention';
/**
 * Maximum organizations with a policy of their own in one statement; an id has at most 128
 * characters.
 */
const ORGS_AT_ONCE = 250;
/** Days exported concurrently. */
const EXPORTS_AT_ONCE = 2;
/** Maximum texts that one statement drops by log position, at about 40 bytes each in the engine. */
const DROPS_AT_ONCE = 1_000_000;
/**
 * Time to wait for the text mover to move texts that have just landed, so that they can be
 * exported.
 */
const MOVES_MS_MAX = 30_000;
const LOOK_MS = 100;

export interface RetentionDeps {
  store: RetentionStore;
  tables: ColdTables;
  cold: ColdStorage;
  /**
   * Reads all policies from the bucket itself, because a watch may lag behind a policy that was
   * just set.
   */
  policies: () => Promise<OrgPolicy[]>;
  /** Tells workers to drop complete traces from memory, because rows of some were deleted. */
  tracesDeleted: () => Promise<void>;
  /** Called between the steps of a run; for tests. */
  step?: ((step: RetentionStep) => Promise<void>) | undefined;
}

/** `deleted <table>` means that the due rows of that table are deleted. */
export type RetentionStep = 'snapshot' | 'exported' | 'dropped' | 'settled' | `deleted ${string}`;

/** Result of a run. Rows are counted as found, before they are deleted. */
interface Counts {
  days_exported: number;
  days_merged: number;
  days_kept: number;
  days_failed: number;
  texts_exported: number;
  texts_dropped: number;
  attributes_cleared: number;
  rows_deleted: number;
  objects_deleted: number;
  parts_dropped: number;
  partitions_masked: number;
  /** Due texts that the text mover had not moved in time; the next run exports them. */
  texts_waiting: number;
}

export function createRetention(deps: RetentionDeps): (context: JobContext) => Promise<JobResult> {
  return async ({ now, signal, log }) => {
    const counts: Counts = {
      days_exported: 0,
      days_merged: 0,
      days_kept: 0,
      days_failed: 0,
      texts_exported: 0,
      texts_dropped: 0,
      attributes_cleared: 0,
      rows_deleted: 0,
      objects_deleted: 0,
      parts_dropped: 0,
      partitions_masked: 0,
      texts_waiting: 0,
    };
    const ranges = cutoffRanges(await deps.policies(), now, ORGS_AT_ONCE);
    await deps.cold.removeLeftovers(signal);
    const failed = await retireTexts(deps, ranges, now, counts, { signal, log });
    await clearColumns(deps, ranges, counts, signal);
    await deleteRows(deps, ranges, now, counts, signal);
    await deleteObjects(deps, ranges, counts, signal);
    if (failed !== null) throw failed;
    return { ...counts };
  };
}

const paramsOf = ({ from, until, orgs, cutoffs, others }: CutoffRange, kept: RetainedKind): CutoffParams => ({
  from,
  until,
  orgs,
  cutoffs: cutoffs[kept],
  others: others[kept],
});

type Run = Pick<JobContext, 'signal' | 'log'>;

/** @returns the first failure of a day that was left unchanged */
async function retireTexts(
  deps: RetentionDeps,
  ranges: readonly CutoffRange[],
  now: number,
  counts: Counts,
  run: Run,
): Promise<Error | null> {
  const { store, tables, step } = deps;
  const { signal } = run;
  const due = ranges.filter((range) => canBeDue(paramsOf(range, 'texts')));
  counts.texts_waiting = await waitForMoves(store, due, signal);
  const earlier = new Set<string>();
  for (const { run: name, needed } of await tables.runs()) {
    if (needed) earlier.add(name);
    else await tables.forgetRun(name);
  }
  const id = `${Date.now()}-${randomBytes(4).toString('hex')}`;
  for (const range of due) await store.snapshot(id, paramsOf(range, 'texts'), paramsOf(range, 'telemetry'));
  const days = await tables.dueDays(id);
  await step?.('snapshot');
  const failed = await exportDays(deps, days, { id, earlier }, counts, run);
  await step?.('exported');
  const rows = days.reduce((sum, day) => sum + day.rows, 0);
  const shares = Math.ceil(rows / DROPS_AT_ONCE);
  const verified = Array.from({ length: shares }, (_, share) => store.verified(id, share, shares));
  const removed = await store.remove('span_texts', verified, signal);
  counts.texts_dropped = removed.rows;
  note(counts, removed);
  await step?.('dropped');
  await tables.writeDropped(id, dayOf(now));
  await step?.('settled');
  for (const name of [id, ...earlier]) await tables.forgetRun(name);
  return failed;
}

/**
 * Waits until the text mover has moved the due texts to the table that exports read.
 * @returns the number of texts not moved in time
 */
async function waitForMoves(
  store: RetentionStore,
  ranges: readonly CutoffRange[],
  signal: AbortSignal,
): Promise<number> {
  const deadline = performance.now() + MOVES_MS_MAX;
  for (;;) {
    let waiting = 0;
    for (const range of ranges) waiting += await store.waiting(paramsOf(range, 'texts'));
    if (waiting === 0 || performance.now() > deadline) return waiting;
    await sleep(LOOK_MS, undefined, { signal });
  }
}

/**
 * Exports days, EXPORTS_AT_ONCE at a time. A day with a missing or corrupt object stays unchanged
 * and does not stop the others.
 */
async function exportDays(
  { cold }: RetentionDeps,
  days: readonly DueDay[],
  run: { id: string; earlier: ReadonlySet<string> },
  counts: Counts,
  { signal, log }: Run,
): Promise<Error | null> {
  let failed: Error | null = null;
  let next = 0;
  const stop = new AbortController();
  const both = AbortSignal.any([signal, stop.signal]);
  const worker = async (): Promise<void> => {
    for (let day = days[next++]; day !== undefined; day = days[next++]) {
      both.throwIfAborted();
      try {
        count(counts, day, await cold.exportDay(day, run.id, run.earlier, both));
      } catch (error) {
        if (!(error instanceof ColdDataError)) {
          stop.abort(error);
          throw error;
        }
        counts.days_failed += 1;
        failed ??= error;
        log.error(
          { err: error, org_id: day.org_id, day: day.day },
          'the texts of a day could not be exported and stay in the store',
        );
      }
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: EXPORTS_AT_ONCE }, worker));
  const failure = ends.find((end) => end.status === 'rejected');
  if (failure !== undefined) throw failure.reason;
  return failed;
}

function count(counts: Counts, day: DueDay, how: ExportOutcome): void {
  if (how === 'kept') {
    counts.days_kept += 1;
    return;
  }
  counts[how === 'merged' ? 'days_merged' : 'days_exported'] += 1;
  counts.texts_exported += day.fresh;
}

async function clearColumns(
  { store }: RetentionDeps,
  ranges: readonly CutoffRange[],
  counts: Counts,
  signal: AbortSignal,
): Promise<void> {
  for (const { table, column, empty, time, kept } of CLEARED_COLUMNS) {
    const cleared = await store.clear(
      table,
      column,
      empty,
      conditionsOf(ranges, kept, (params) => dueBy(time, params)),
      signal,
    );
    if (table === 'spans') counts.attributes_cleared += cleared;
  }
}

async function deleteRows(
  { store, tracesDeleted, step }: RetentionDeps,
  ranges: readonly CutoffRange[],
  now: number,
  counts: Counts,
  signal: AbortSignal,
): Promise<void> {
  for (const deleted of DELETED_TABLES) {
    const newest = deleted.daysMin === undefined ? Infinity : dayOf(now) - deleted.daysMin;
    const conditions = conditionsOf(ranges, deleted.kept, dueIn(deleted), newest);
    const removed = await store.remove(deleted.table, conditions, signal);
    counts.rows_deleted += removed.rows;
    if (deleted.table === 'traces' && removed.rows > 0) await tracesDeleted();
    note(counts, removed);
    await step?.(`deleted ${deleted.table}`);
  }
  // Texts leave span_texts by their export or with the rows above.
  await store.dropPostings(signal);
  await step?.('deleted span_words');
}

async function deleteObjects(
  { tables, cold }: RetentionDeps,
  ranges: readonly CutoffRange[],
  counts: Counts,
  signal: AbortSignal,
): Promise<void> {
  for (const { sql, params } of conditionsOf(ranges, 'telemetry', (params) => dueBy('day', params))) {
    for (const object of await tables.objectsDue(sql, params)) {
      signal.throwIfAborted();
      await cold.remove(object, signal);
      counts.objects_deleted += 1;
    }
  }
}

/** @param newest latest day that a cutoff may have */
function conditionsOf(
  ranges: readonly CutoffRange[],
  kept: RetainedKind,
  due: (cutoffs: CutoffParams) => Condition,
  newest = Infinity,
): Condition[] {
  const within = (cutoff: number): number => Math.min(cutoff, newest);
  return ranges
    .map((range) => paramsOf(range, kept))
    .map((params) => ({ ...params, cutoffs: params.cutoffs.map(within), others: within(params.others) }))
    .filter(canBeDue)
    .map(due);
}

/** Returns the function that builds the condition for due rows of a table. */
function dueIn({ table, column, key, withSpans }: DeletedTable): (cutoffs: CutoffParams) => Condition {
  if (withSpans === true) return tracesDueBy;
  if (key === undefined) return (cutoffs) => dueBy(column, cutoffs);
  return (cutoffs) => dueByKey(table, key, dueBy(column, cutoffs));
}

function note(counts: Counts, { parts_dropped, partitions_masked }: Removed): void {
  counts.parts_dropped += parts_dropped;
  counts.partitions_masked += partitions_masked;
}
