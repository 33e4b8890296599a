// Long job `erase`: deletes everything stored of the traces that contain a value (a user, a
// session, an attribute) from the store, cold storage and the ingest log, and searches again before
// it reports success.
//
// Takes an attribute and a value. Returns what was found and deleted; fails if anything is left.
// The job waits until everything accepted before it began has landed; later events are new data. It
// records the traces before it deletes anything, so that a worker that takes over after a crash
// erases the same ones; every step may be repeated. A lease keeps retention from running meanwhile,
// so that no text moves to cold storage beside it.
import { setTimeout as sleep } from 'node:timers/promises';
import { eraseArgs } from '../../schemas/records/erasure.ts';
import type { ErasureRequestState } from '../../ops/exchange/erase_requests.ts';
import type { DeadLetter, UserScore } from '../../schemas/codec.ts';
import { StoreUnavailable } from '../../sql/client/client.ts';
import { ERASED_TABLES, type ErasureStore, type Scope } from '../../sql/stores/erasure.ts';
import type { ErasureOfShards } from '../../sql/stores/erasure_of_shards.ts';
import type { ColdStorage } from '../cold/cold_storage.ts';
import { TEXT_PLACES } from '../domain/text/text_refs.ts';
import type { Lease } from '../jobs/lease.ts';
import type { LongJobContext, LongJobHandler } from '../jobs/long_jobs.ts';
import { FORGET_AT_ONCE, type Forgettable } from './forget.ts';
import type { LogEnd } from './logs.ts';

/** Maximum rounds of deleting rows that appeared meanwhile, before the job fails. */
const ROUNDS_MAX = 5;
const ROUND_PAUSE_MS = 100;
/** Maximum time to wait for a run of retention to end. */
const LEASE_MS_MAX = 6 * 3_600_000;
const LEASE_LOOK_MS = 250;
const SAMPLES_MAX = 10_000;
const STEPS = 6;

export type EraseStep = 'collected' | 'erased' | 'rewritten' | 'forgotten' | 'purged' | 'proven';

/** A shard with its part of cold storage, from which an erasure deletes texts. */
export interface EraseShard {
  store: Pick<ErasureStore, 'days' | 'texts'>;
  cold: Pick<ColdStorage, 'removeLeftovers' | 'objectsOf' | 'rewrite'>;
}

type EraseStore = Pick<ErasureOfShards, keyof ErasureOfShards>;

export interface EraseDeps {
  /** The rows of all shards. */
  store: EraseStore;
  shards: readonly EraseShard[];
  asks: {
    read: (org_id: string, ask_id: string) => Promise<ErasureRequestState | null>;
    settle: (org_id: string, ask_id: string, result: Record<string, unknown>) => Promise<void>;
  };
  /** Returns the value and all forms in which it may be stored. */
  formsOf: (org_id: string, attribute: string, value: string) => Promise<string[]>;
  /** Takes the lease that allows changes to cold storage; returns null while retention holds it. */
  lease: () => Promise<Pick<Lease, 'signal' | 'release'> | null>;
  /** Returns true when a job is known to have ended. */
  isOver: (job_id: string) => boolean;
  log: {
    /** Returns where the ingest log ends. */
    end: () => Promise<LogEnd>;
    /** Resolves when the events of the organization that wait to be folded are in the ingest log. */
    folded: (org_id: string, signal: AbortSignal) => Promise<void>;
    /** Resolves when everything in the ingest log has landed. */
    landed: (signal: AbortSignal) => Promise<void>;
    /** @returns the number of messages up to the end that are still in the log */
    purge: (end: LogEnd) => Promise<number>;
    /** @returns the number of deleted scores that waited for their trace */
    erasePendingScores: (
      org_id: string,
      isMeant: (scores: readonly UserScore[]) => Promise<readonly boolean[]>,
      signal: AbortSignal,
    ) => Promise<number>;
    eraseDeadLetters: (
      org_id: string,
      isMeant: (letters: readonly DeadLetter[]) => Promise<readonly boolean[]>,
      signal: AbortSignal,
    ) => Promise<number>;
  };
  /** Offset that the store adds to positions of the log. */
  logBase: number;
  /**
   * Tells the owners of the traces' partitions to drop the traces, or the identities of their
   * events, from memory.
   */
  forget: (org_id: string, traceIds: readonly string[], what: Forgettable, signal: AbortSignal) => Promise<void>;
  emptyOpenSamples: (org_id: string, samples: readonly { cluster_id: string; sample: string }[]) => Promise<void>;
  /** Deletes the items of annotation queues that have one of the traces, with scores that wait in them. */
  deleteAnnotationItems: (org_id: string, traceIds: readonly string[]) => Promise<void>;
  /** Resolves when everything written before the call would survive power loss. */
  sync: () => Promise<void>;
  /** Called between the steps; for tests. */
  step?: ((step: EraseStep) => Promise<void>) | undefined;
}

/**
 * Creates the handler of the job. Its result holds matched_traces; spans, texts and rows by table
 * as found; the cold objects that were rewritten or deleted, and their deleted texts; scores that waited
 * for their trace; dead letters;
 * the position up to which the log was purged; and remaining: 0.
 */
export function createErase(deps: EraseDeps): LongJobHandler {
  return async (context) => {
    const { org_id, job_id, signal } = context;
    const { attribute, ask_id } = eraseArgs.parse(context.args);
    await forgetEndedJobs(deps, job_id);
    const ask = await deps.asks.read(org_id, ask_id);
    if (ask === null)
      throw new Error('the erasure request has expired and its value is deleted; request the erasure again');
    if (ask.value === null) return ask.result;
    const lease = await takeLease(deps, signal);
    try {
      const both = AbortSignal.any([signal, lease.signal]);
      const result = await eraseValue(deps, { ...context, signal: both }, { attribute, value: ask.value });
      await deps.asks.settle(org_id, ask_id, result);
      await deps.store.forget(job_id);
      return result;
    } catch (error) {
      if (lease.signal.aborted && !signal.aborted)
        throw new StoreUnavailable('the lease of cold storage was lost', { cause: error });
      throw error;
    } finally {
      await lease.release();
    }
  };
}

async function eraseValue(
  deps: EraseDeps,
  { org_id, job_id, progress, signal }: LongJobContext,
  { attribute, value }: { attribute: string; value: string },
): Promise<Record<string, unknown>> {
  const { store, log, logBase, sync, step } = deps;
  const scope: Scope = { org_id, job_id };
  let done = 0;
  const reached = async (name: EraseStep): Promise<void> => {
    progress(++done, STEPS);
    await step?.(name);
  };
  progress(0, STEPS);
  await log.folded(org_id, signal);
  await log.landed(signal);
  const values = await deps.formsOf(org_id, attribute, value);
  await store.collect(scope, { attribute, values, text: TEXT_PLACES.get(attribute) });
  await reached('collected');
  const erasePending = () => log.erasePendingScores(org_id, (some) => scoresMeant(store, scope, values, some), signal);
  const pending = await erasePending();
  await deps.emptyOpenSamples(org_id, await store.samples(scope, SAMPLES_MAX));
  await store.emptySamples(scope, signal);
  await eraseAnnotations(deps, scope);
  await store.erase(scope, null, signal);
  await reached('erased');
  const cold = await eraseCold(deps, scope, signal);
  await reached('rewritten');
  await forgetAll(deps, scope, 'traces', signal);
  // Everything that workers made of the traces before they dropped them is in the log up to this
  // end; later events are new data.
  const end = await log.end();
  await log.landed(signal);
  const marks = end.positions.map((position) => logBase + position);
  await eraseAgain(deps, scope, marks, signal);
  await reached('forgotten');
  await sync();
  const pendingLate = await erasePending();
  const letters = await log.eraseDeadLetters(org_id, (some) => meantOf(store, scope, values, some), signal);
  await log.purge(end);
  await reached('purged');

  const left = await store.remaining(scope, marks);
  const again = await eraseCold(deps, scope, signal);
  const inLog = await log.purge(end);
  const remaining = [...left.values()].reduce((sum, rows) => sum + rows, again.texts + inLog);
  if (remaining > 0) throw new Error(`the erasure is not complete; left: ${leftText(left, again.texts, inLog)}`);
  await reached('proven');
  // This comes last, when no row is left: from now on the same event sent again counts as new.
  await forgetAll(deps, scope, 'events', signal);
  const found = await store.found(scope);
  return {
    matched_traces: await store.traceCount(scope),
    spans: found.get('spans') ?? 0,
    // While the text mover runs, a text may be in both tables.
    texts: (found.get('span_texts') ?? 0) + (found.get('span_texts_recent') ?? 0),
    rows: Object.fromEntries(ERASED_TABLES.map(({ table }) => [table, found.get(table) ?? 0])),
    objects_rewritten: cold.rewritten,
    objects_searched: cold.searched,
    cold_texts: cold.texts,
    pending_scores: pending + pendingLate,
    dead_letters: letters,
    log_purged_through: end.newest,
    remaining,
  };
}

function leftText(left: ReadonlyMap<string, number>, cold: number, inLog: number): string {
  const parts = [...left].map(([table, rows]) => `${rows} rows of ${table}`);
  if (cold > 0) parts.push(`${cold} texts in cold storage`);
  if (inLog > 0) parts.push(`${inLog} messages of the ingest log`);
  return parts.join(', ');
}

/** Waits until no run of retention is active, then keeps retention from running. */
export async function takeLease(
  { lease }: Pick<EraseDeps, 'lease'>,
  signal: AbortSignal,
): Promise<Pick<Lease, 'signal' | 'release'>> {
  const deadline = performance.now() + LEASE_MS_MAX;
  for (;;) {
    const taken = await lease();
    if (taken !== null) return taken;
    if (performance.now() > deadline) throw new Error('retention has been running for too long');
    await sleep(LEASE_LOOK_MS, undefined, { signal });
  }
}

/** Objects that were searched and rewritten, and deleted texts. */
interface ColdCounts {
  searched: number;
  rewritten: number;
  texts: number;
}

/** Deletes the texts from the objects of the days on which spans of the traces started. */
async function eraseCold({ shards }: EraseDeps, scope: Scope, signal: AbortSignal): Promise<ColdCounts> {
  const counts = { searched: 0, rewritten: 0, texts: 0 };
  for (const shard of shards) await eraseColdOf(shard, scope, counts, signal);
  return counts;
}

async function eraseColdOf(
  { cold, store }: EraseShard,
  scope: Scope,
  counts: ColdCounts,
  signal: AbortSignal,
): Promise<void> {
  const days = new Set(await store.days(scope));
  if (days.size === 0) return;
  // A crashed run may have left an obsolete object beside its replacement.
  await cold.removeLeftovers(signal);
  for (const object of await cold.objectsOf(scope.org_id, { since: Math.min(...days), until: Math.max(...days) })) {
    signal.throwIfAborted();
    if (!days.has(object.day)) continue;
    const texts = await cold.rewrite(object, store.texts(scope), scope.job_id, signal);
    counts.searched += 1;
    counts.texts += texts;
    if (texts > 0) counts.rewritten += 1;
  }
}

async function eraseAnnotations({ store, deleteAnnotationItems }: EraseDeps, scope: Scope): Promise<void> {
  for (let after = ''; ;) {
    const page = await store.traces(scope, after, FORGET_AT_ONCE);
    const last = page.at(-1);
    if (last === undefined) return;
    await deleteAnnotationItems(scope.org_id, page);
    after = last;
  }
}

async function forgetAll(
  { store, forget }: EraseDeps,
  scope: Scope,
  what: Forgettable,
  signal: AbortSignal,
): Promise<void> {
  for (let after = ''; ;) {
    const page = await store.traces(scope, after, FORGET_AT_ONCE);
    const last = page.at(-1);
    if (last === undefined) return;
    await forget(scope.org_id, page, what, signal);
    after = last;
  }
}

/** Deletes rows that appeared while the others were deleted. */
async function eraseAgain(
  { store }: EraseDeps,
  scope: Scope,
  marks: readonly number[],
  signal: AbortSignal,
): Promise<void> {
  for (let round = 1; round <= ROUNDS_MAX; round++) {
    if ((await store.remaining(scope, marks)).size === 0) return;
    await store.erase(scope, marks, signal);
    if (round > 1) await sleep(ROUND_PAUSE_MS, undefined, { signal });
  }
}

/** Returns, for each dead letter, whether it belongs to one of the traces or contains the value. */
async function meantOf(
  store: EraseStore,
  scope: Scope,
  values: readonly string[],
  letters: readonly DeadLetter[],
): Promise<boolean[]> {
  const listed = await store.listed(scope, [...new Set(letters.map(({ trace_id }) => trace_id))]);
  // The value is compared as a whole JSON string: a short value would otherwise match parts of
  // other words.
  const texts = values.map((value) => Buffer.from(JSON.stringify(value)));
  return letters.map(({ trace_id, body }) => listed.has(trace_id) || texts.some((text) => body.includes(text)));
}

/** Returns, for each waiting score, whether it is of one of the traces or has the value as its comment or category. */
async function scoresMeant(
  store: EraseStore,
  scope: Scope,
  values: readonly string[],
  scores: readonly UserScore[],
): Promise<boolean[]> {
  const listed = await store.listed(scope, [...new Set(scores.map(({ trace_id }) => trace_id))]);
  return scores.map(
    ({ trace_id, comment, text }) => listed.has(trace_id) || values.includes(comment) || values.includes(text),
  );
}

/** Deletes the records of jobs that have ended. */
async function forgetEndedJobs({ store, isOver }: EraseDeps, job_id: string): Promise<void> {
  for (const id of await store.jobs()) if (id !== job_id && isOver(id)) await store.forget(id);
}
