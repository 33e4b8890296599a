// Long job `delete_org`: erases everything of an organization from KV, the queues, the ingest log,
// ClickHouse and cold storage, searches again until nothing is found, and then frees the
// organization's id.
//
// Before the job begins, the record of the deletion (ops/exchange/org_deletions.ts) has closed the
// organization: its keys are rejected, none of its events are accepted, and workers drop its events
// as they read them. The job returns what was erased, or fails. Every step may be repeated, so a
// worker that takes over starts from the beginning. The organization's record is deleted last:
// until then nobody can create an organization with the same id.
import { setTimeout as sleep } from 'node:timers/promises';
import type { DeadLetter } from '../../schemas/codec.ts';
import { deleteOrgArgs, type OrgDeletion } from '../../schemas/records/org_deletion.ts';
import { StoreUnavailable } from '../../sql/client/client.ts';
import type { OrgErasureOfShards } from '../../sql/stores/org_erasure.ts';
import type { LogEnd } from '../erasure/logs.ts';
import type { Lease } from '../jobs/lease.ts';
import type { LongJobContext, LongJobHandler } from '../jobs/long_jobs.ts';

/**
 * Time after which requests, deliveries and statements that began before the organization was
 * closed have ended. It exceeds the timeout of a delivery, the time that an ingest waits for the
 * log, and the time that a job runs on without its record.
 */
const QUIET_MS = 12_000;
/** Maximum rounds of erasing and searching before the job fails. */
const ROUNDS_MAX = 10;
const STEPS = 5;

export type DeleteOrgStep = 'closed' | 'landed' | 'erased' | 'proven' | 'opened';

export interface DeleteOrgDeps {
  deletions: {
    get: (org_id: string) => OrgDeletion | null;
    complete: (org_id: string, job_id: string, completed_at: string) => Promise<boolean>;
  };
  /** The rows of all shards. */
  store: Pick<OrgErasureOfShards, 'remaining' | 'erase'>;
  /**
   * Deletes the records that erasures and restores keep for jobs of the organization. Call it while
   * the jobs are known.
   */
  forgetJobs: (org_id: string) => Promise<void>;
  buckets: {
    erase: (org_id: string, signal: AbortSignal) => Promise<number>;
    eraseOrg: (org_id: string) => Promise<void>;
    eraseMarks: (org_id: string) => Promise<void>;
  };
  log: {
    /** Returns where the ingest log ends. */
    end: () => Promise<LogEnd>;
    /** Resolves when everything in the ingest log has landed or was dropped. */
    landed: (signal: AbortSignal) => Promise<void>;
    purge: (end: LogEnd) => Promise<number>;
    purgeEvents: (signal: AbortSignal) => Promise<void>;
    eraseQueued: (org_id: string, signal: AbortSignal) => Promise<number>;
    eraseDeadLetters: (isMeant: (letter: DeadLetter) => boolean, signal: AbortSignal) => Promise<number>;
    isDeadLetterOf: (letter: DeadLetter, org_id: string) => boolean;
  };
  /** Tells the owners of all partitions to drop everything of the organization from memory. */
  forget: (org_id: string, signal: AbortSignal) => Promise<void>;
  /**
   * Deletes every object of the organization in cold storage.
   * @returns the number of deleted objects
   */
  eraseObjects: (org_id: string, signal: AbortSignal) => Promise<number>;
  /** Waits for the lease that allows changes to cold storage. */
  lease: (signal: AbortSignal) => Promise<Pick<Lease, 'signal' | 'release'>>;
  /** Resolves when everything written before the call would survive power loss. */
  sync: () => Promise<void>;
  /** Milliseconds since the epoch. */
  now: () => number;
  /** Called between the steps; for tests. */
  step?: ((step: DeleteOrgStep) => Promise<void>) | undefined;
  /** Divides QUIET_MS; for tests. */
  hurry?: number;
}

/** Counts of everything erased. */
interface Erased {
  rows: Map<string, number>;
  records: number;
  messages: number;
  dead_letters: number;
  objects: number;
}

/**
 * Creates the handler of the job. Its result holds the erased rows by table, KV records, messages
 * of queues, dead letters and objects, and remaining: 0.
 */
export function createDeleteOrg(deps: DeleteOrgDeps): LongJobHandler {
  return async (context) => {
    const { org_id } = deleteOrgArgs.parse(context.args);
    const deletion = deps.deletions.get(org_id);
    // This job has completed the deletion without reporting it, or another job has taken it over.
    // The organization may exist again and is left alone.
    if (deletion?.state !== 'running' || deletion.job_id !== context.job_id)
      return { org_id, superseded: deletion?.state !== 'complete' };
    let done = 0;
    const reached = async (name: DeleteOrgStep): Promise<void> => {
      context.progress(++done, STEPS);
      await deps.step?.(name);
    };
    context.progress(0, STEPS);
    const total: Erased = { rows: new Map(), records: 0, messages: 0, dead_letters: 0, objects: 0 };
    await deps.forgetJobs(org_id);
    // Records of jobs, evals, judges and webhooks are deleted first, because they create more. A
    // job of the organization may hold the lease until its record is deleted.
    total.records += await deps.buckets.erase(org_id, context.signal);
    await quiet(deps, context.signal);
    await reached('closed');
    const lease = await deps.lease(context.signal);
    try {
      const signal = AbortSignal.any([context.signal, lease.signal]);
      return await eraseAll(deps, { ...context, signal }, { org_id, total, reached });
    } catch (error) {
      if (lease.signal.aborted && !context.signal.aborted)
        throw new StoreUnavailable('the lease of cold storage was lost', { cause: error });
      throw error;
    } finally {
      await lease.release();
    }
  };
}

async function eraseAll(
  deps: DeleteOrgDeps,
  { job_id, signal }: LongJobContext,
  { org_id, total, reached }: { org_id: string; total: Erased; reached: (step: DeleteOrgStep) => Promise<void> },
): Promise<Record<string, unknown>> {
  const { log, buckets, now } = deps;
  await deps.forget(org_id, signal);
  const end = await log.end();
  await log.landed(signal);
  await log.purgeEvents(signal);
  await reached('landed');

  add(total, await eraseOnce(deps, org_id, signal));
  await reached('erased');
  await eraseUntilNothing(deps, org_id, total, signal);
  await log.purge(end);
  await log.purgeEvents(signal);
  await deps.sync();
  await buckets.eraseMarks(org_id);
  await reached('proven');

  // A worker that was paused must not delete an organization that was created again.
  signal.throwIfAborted();
  await buckets.eraseOrg(org_id);
  await buckets.eraseMarks(org_id);
  if (!(await deps.deletions.complete(org_id, job_id, new Date(now()).toISOString())))
    throw new Error('another job has taken over the deletion');
  await reached('opened');
  const { rows, records, messages, dead_letters, objects } = total;
  return {
    org_id,
    rows: Object.fromEntries(rows),
    records,
    messages,
    dead_letters,
    objects,
    log_purged_through: end.newest,
    remaining: 0,
  };
}

/**
 * Erases what appeared meanwhile, until a round QUIET_MS after the last one finds nothing.
 * @throws Error with what is left
 */
async function eraseUntilNothing(
  deps: DeleteOrgDeps,
  org_id: string,
  total: Erased,
  signal: AbortSignal,
): Promise<void> {
  for (let round = 1; ; round++) {
    await quiet(deps, signal);
    const found = await eraseOnce(deps, org_id, signal);
    add(total, found);
    const text = textOf(found);
    if (text === '') return;
    if (round >= ROUNDS_MAX) throw new Error(`the deletion is not complete; found again: ${text}`);
  }
}

async function eraseOnce(
  { store, buckets, log, eraseObjects }: DeleteOrgDeps,
  org_id: string,
  signal: AbortSignal,
): Promise<Erased> {
  const records = await buckets.erase(org_id, signal);
  const messages = await log.eraseQueued(org_id, signal);
  const rows = await store.remaining(org_id);
  await store.erase(org_id, rows.keys(), signal);
  const objects = await eraseObjects(org_id, signal);
  const dead_letters = await log.eraseDeadLetters((letter) => log.isDeadLetterOf(letter, org_id), signal);
  return { rows, records, messages, dead_letters, objects };
}

const quiet = ({ hurry = 1 }: DeleteOrgDeps, signal: AbortSignal): Promise<void> =>
  sleep(QUIET_MS / hurry, undefined, { signal });

function add(total: Erased, found: Erased): void {
  for (const [table, rows] of found.rows) total.rows.set(table, (total.rows.get(table) ?? 0) + rows);
  total.records += found.records;
  total.messages += found.messages;
  total.dead_letters += found.dead_letters;
  total.objects += found.objects;
}

/** Returns the counts as text; empty for none. */
function textOf({ rows, records, messages, dead_letters, objects }: Erased): string {
  const parts = [...rows].map(([table, count]) => `${count} rows of ${table}`);
  const counts: [number, string][] = [
    [records, 'records'],
    [messages, 'queued messages'],
    [dead_letters, 'dead letters'],
    [objects, 'objects in cold storage'],
  ];
  for (const [count, what] of counts) if (count > 0) parts.push(`${count} ${what}`);
  return parts.join(', ');
}
