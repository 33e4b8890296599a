// The deletion of an organization, as long work: erases everything of it from KV, the queues, the ingest log, ClickHouse and cold storage,
// looks again until nothing is found, and then opens the organization's id again.
//
// In: the org id. The record of the deletion (ops/exchange/org_deletions.ts) has closed the organization before this begins: its keys are refused,
// nothing of it is accepted, and workers drop its events as they read them. Out: what was erased, and remaining: 0, or the work fails.
// Every step may be repeated, so a worker that takes over begins from the start. The organization's record goes last: until then nobody
// can make one of the same id.
import { setTimeout as sleep } from 'node:timers/promises';
import type { DeadLetter } from '../../schemas/codec.ts';
import { deleteOrgArgs, type OrgDeletion } from '../../schemas/records/org_deletion.ts';
import { StoreUnavailable } from '../../sql/client/client.ts';
import type { OrgErasureStore } from '../../sql/stores/org_erasure.ts';
import type { Lease } from '../jobs/lease.ts';
import type { LongJobContext, LongJobHandler } from '../jobs/long_jobs.ts';

/**
 * Requests, deliveries and statements that began before the organization was closed have ended after this: longer than the timeout of a
 * delivery, than an ingest waits for the log, and than a job without its record goes on.
 */
const QUIET_MS = 12_000;
/** Rounds of erasing and looking before the work fails. */
const ROUNDS_MAX = 10;
const STEPS = 5;

export type DeleteOrgStep = 'closed' | 'landed' | 'erased' | 'proven' | 'opened';

export interface DeleteOrgDeps {
  deletions: {
    get: (org_id: string) => OrgDeletion | null;
    complete: (org_id: string, job_id: string, completed_at: string) => Promise<boolean>;
  };
  store: Pick<OrgErasureStore, 'remaining' | 'erase'>;
  /** Deletes what erasures and reads of cold storage have written down for jobs of the org. Call it while its jobs are known. */
  forgetJobs: (org_id: string) => Promise<void>;
  buckets: {
    erase: (org_id: string, signal: AbortSignal) => Promise<number>;
    eraseOrg: (org_id: string) => Promise<void>;
    eraseMarks: (org_id: string) => Promise<void>;
  };
  log: {
    /** Sequence of the newest message of the ingest log. */
    position: () => Promise<number>;
    /** Resolves when everything that the log holds has landed, or was dropped. */
    landed: (signal: AbortSignal) => Promise<void>;
    purge: (through: number) => Promise<number>;
    purgeEvents: (signal: AbortSignal) => Promise<void>;
    eraseQueued: (org_id: string, signal: AbortSignal) => Promise<number>;
    eraseDeadLetters: (isMeant: (letter: DeadLetter) => boolean, signal: AbortSignal) => Promise<number>;
    isDeadLetterOf: (letter: DeadLetter, org_id: string) => boolean;
  };
  /** Has the owners of all partitions drop what they hold of the org. */
  forget: (org_id: string, signal: AbortSignal) => Promise<void>;
  /** Deletes every object of the org in cold storage. @returns how many there were */
  eraseObjects: (org_id: string, signal: AbortSignal) => Promise<number>;
  /** The right to change cold storage, waited for. */
  lease: (signal: AbortSignal) => Promise<Pick<Lease, 'signal' | 'giveBack'>>;
  /** Resolves when everything written before the call would survive power loss. */
  sync: () => Promise<void>;
  /** Milliseconds since the epoch. */
  now: () => number;
  /** Called between the steps. */
  step?: ((step: DeleteOrgStep) => Promise<void>) | undefined;
  /** QUIET_MS is divided by this, for tests. */
  hurry?: number;
}

/** Everything of an org that can be counted. */
interface Erased {
  rows: Map<string, number>;
  records: number;
  messages: number;
  dead_letters: number;
  objects: number;
}

/** Result: rows by table, records in KV, messages of queues, dead letters and objects that were erased, and remaining: 0. */
export function createDeleteOrg(deps: DeleteOrgDeps): LongJobHandler {
  return async (context) => {
    const { org_id } = deleteOrgArgs.parse(context.args);
    const deletion = deps.deletions.get(org_id);
    // Done by this job before it could say so, or passed to another job: the org may have been made again, and is left alone.
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
    // First what makes more: jobs, evals, judges, webhooks. A job of the org may hold the lease until its record is gone.
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
      await lease.giveBack();
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
  const through = await log.position();
  await log.landed(signal);
  await log.purgeEvents(signal);
  await reached('landed');

  add(total, await eraseOnce(deps, org_id, signal));
  await reached('erased');
  await eraseUntilNothing(deps, org_id, total, signal);
  await log.purge(through);
  await log.purgeEvents(signal);
  await deps.sync();
  await buckets.eraseMarks(org_id);
  await reached('proven');

  // A worker that was held up must not delete an org that was made again.
  signal.throwIfAborted();
  await buckets.eraseOrg(org_id);
  await buckets.eraseMarks(org_id);
  if (!(await deps.deletions.complete(org_id, job_id, new Date(now()).toISOString())))
    throw new Error('another job carries the deletion out by now');
  await reached('opened');
  const { rows, records, messages, dead_letters, objects } = total;
  return {
    org_id,
    rows: Object.fromEntries(rows),
    records,
    messages,
    dead_letters,
    objects,
    log_purged_through: through,
    remaining: 0,
  };
}

/** Erases what came while the rest went, until two looks QUIET_MS apart have found nothing. @throws Error saying what is left */
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
    if (round >= ROUNDS_MAX) throw new Error(`not everything is gone: ${text} came again`);
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

/** What was found, for people; empty for nothing. */
function textOf({ rows, records, messages, dead_letters, objects }: Erased): string {
  const parts = [...rows].map(([table, count]) => `${String(count)} rows of ${table}`);
  const counts: [number, string][] = [
    [records, 'records'],
    [messages, 'queued messages'],
    [dead_letters, 'dead letters'],
    [objects, 'objects in cold storage'],
  ];
  for (const [count, what] of counts) if (count > 0) parts.push(`${String(count)} ${what}`);
  return parts.join(', ');
}
