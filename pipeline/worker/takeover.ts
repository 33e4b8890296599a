// Brings up the partitions that this worker has claimed: raises their fences, reads their history
// from the store, and adds their state to the worker, which reads the log from their checkpoints
// on. Each step is one statement for all of them.
import type { Fences } from '../landing/fences.ts';
import { JudgedInputs } from '../judging/rule_inputs.ts';
import { traceKey } from '../domain/traces/ids.ts';
import { LIMITS } from '../limits.ts';
import type { LandedCall, MatchDeps, PlacedRecord } from '../stages/match.ts';
import type { Ownership } from './ownership.ts';
import type { PartitionRecord } from '../../schemas/records/partition.ts';
import {
  emptyMemory,
  type HistoryOptions,
  type HistoryStore,
  type PartitionHistory,
  type PartitionState,
  rebuild,
} from './partition_state.ts';
import type { Worker } from './worker.ts';

export interface TakeoverDeps {
  ownership: Pick<Ownership, 'isOwner' | 'epochOf' | 'formerOf' | 'isLive'>;
  states: ReadonlyMap<number, PartitionState>;
  worker: Pick<Worker, 'add'>;
  fences: Pick<Fences, 'raise'>;
  store: HistoryStore;
  history: HistoryOptions;
  /** Number of partitions of the log. Each gets its share of the bounds of a worker. */
  partitions: number;
  /** Quiet time after which a trace is complete, with and without a root, in milliseconds. */
  graceMs: number;
  idleMs: number;
  /** Returns the counted calls of traces that landed before a position; see MatchDeps. */
  findCalls: MatchDeps['findCalls'];
  /** Returns whether the organization has judges of live traces. */
  isJudged(orgId: string): boolean;
}

/**
 * Maximum traces whose calls are read at a takeover, so that the first batches need not look them up.
 * Their ids fit one statement.
 */
const RECALLED_TRACES_MAX = 600;

/**
 * Resolves when the worker reads every partition of `records` that it still owns. A call after a
 * failure skips partitions that are up already, because their state is ahead of their record.
 *
 * The longest reads, of what lies below the checkpoints, run while the fences are raised.
 *
 * @throws StoreUnavailable if a fence could not be raised or a history not be read; no partition is added then
 */
export async function takeOver(deps: TakeoverDeps, records: readonly PartitionRecord[]): Promise<void> {
  const { ownership, states, fences, store, history: options } = deps;
  const down = records.filter(
    ({ partition, epoch }) => ownership.isOwner(partition) && states.get(partition)?.epoch !== epoch,
  );
  if (down.length === 0) return;
  const share = shareOf(deps);
  const memories = new Map(
    down.map(({ partition }) => [partition, emptyMemory(options.windowMs, share(LIMITS.dedupe_ids_exact_max))]),
  );
  const [histories, calls] = await allOf([
    fences
      .raise(
        down.map((record) => [record.partition, record.epoch] as const),
        ownership,
      )
      .then(() => store.histories(down, options)),
    recallCalls(deps, down),
    store.recall(down, options, memories),
  ]);
  const read = down.flatMap((record) => {
    const [history, memory] = [histories.get(record.partition), memories.get(record.partition)];
    if (history === undefined || memory === undefined) return [];
    const state = rebuilt(deps, record, history, memory);
    for (const { place, landed } of calls) if (place.partition === record.partition) state.calls.restore(place, landed);
    return [state];
  });
  deps.worker.add(read.filter(({ partition, epoch }) => ownership.epochOf(partition) === epoch));
}

/**
 * Returns the calls of the newest open traces that landed up to the checkpoint of their partition. The
 * calls above it are read again.
 */
async function recallCalls(
  { store, history: options, findCalls }: TakeoverDeps,
  records: readonly PartitionRecord[],
): Promise<{ place: PlacedRecord; landed: readonly LandedCall[] }[]> {
  const checkpoints = new Map(records.map(({ partition, checkpoint }) => [partition, checkpoint]));
  const traces = await store.newestTraces(records, options, RECALLED_TRACES_MAX);
  if (traces.length === 0) return [];
  const places = traces.map((trace) => ({
    ...trace,
    log_seq: options.logBase + (checkpoints.get(trace.partition) ?? 0) + 1,
  }));
  const landed = Map.groupBy(await findCalls(places), traceOf);
  return places.map((place) => ({ place, landed: landed.get(traceOf(place)) ?? [] }));
}

const traceOf = ({ org_id, trace_id }: { org_id: string; trace_id: string }): string => traceKey(org_id, trace_id);

/** Returns the results once all have ended, so that nothing of a failed takeover runs beside the next one. */
async function allOf<T extends readonly Promise<unknown>[]>(
  promises: readonly [...T],
): Promise<{ -readonly [I in keyof T]: Awaited<T[I]> }> {
  await Promise.allSettled(promises);
  return Promise.all(promises);
}

const shareOf =
  ({ partitions }: TakeoverDeps) =>
  (bound: number): number =>
    Math.ceil(bound / partitions);

function rebuilt(
  deps: TakeoverDeps,
  record: PartitionRecord,
  history: PartitionHistory,
  memory: ReturnType<typeof emptyMemory>,
): PartitionState {
  const share = shareOf(deps);
  return rebuild(record, history, memory, {
    logBase: deps.history.logBase,
    limits: {
      graceMs: deps.graceMs,
      idleMs: deps.idleMs,
      openMax: share(LIMITS.open_traces_max),
      doneMax: share(LIMITS.done_traces_max),
      judgedFromStoreMax: share(LIMITS.judged_from_store_max),
      callIdsMax: share(LIMITS.call_ids_max),
    },
    inputs: new JudgedInputs((org_id) => deps.isJudged(org_id), share(LIMITS.judged_bytes_max)),
    now: Date.now(),
  });
}
