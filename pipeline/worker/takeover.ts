// Brings up the partitions that this worker has claimed: raises their fences, reads their history
// from the store, and adds their state to the worker, which reads the log from their checkpoints
// on.
import { inParallel } from '../../ops/platform/in_parallel.ts';
import type { Fences } from '../landing/fences.ts';
import { JudgedInputs } from '../judging/rule_inputs.ts';
import { LIMITS } from '../limits.ts';
import type { Ownership } from './ownership.ts';
import type { PartitionRecord } from '../../schemas/records/partition.ts';
import {
  emptyMemory,
  type HistoryOptions,
  type HistoryStore,
  type PartitionState,
  rebuild,
} from './partition_state.ts';
import type { Worker } from './worker.ts';

export interface TakeoverDeps {
  ownership: Pick<Ownership, 'isOwner' | 'epochOf'>;
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
  /** Returns whether the organization has judges of live traces. */
  isJudged(orgId: string): boolean;
}

/**
 * Histories read at the same time. Beside the landings of other workers their statements wait for the store more than they
 * work, so reading one after the other would add up the waits.
 */
const HISTORIES_AT_ONCE = 4;

/**
 * Resolves when the worker reads every partition of `records` that it still owns. A call after a
 * failure skips partitions that are up already, because their state is ahead of their record.
 *
 * @throws StoreUnavailable if a history could not be read; the partitions whose history was read are up then
 */
export async function takeOver(deps: TakeoverDeps, records: readonly PartitionRecord[]): Promise<void> {
  const { ownership, states, fences } = deps;
  const down = records.filter(
    ({ partition, epoch }) => ownership.isOwner(partition) && states.get(partition)?.epoch !== epoch,
  );
  await fences.raise(down.map((record) => [record.partition, record.epoch] as const));
  const read: PartitionState[] = [];
  const failures: unknown[] = [];
  await inParallel(down, HISTORIES_AT_ONCE, async (record) => {
    await recover(deps, record).then(
      (state) => read.push(state),
      (error: unknown) => failures.push(error),
    );
  });
  deps.worker.add(read.filter(({ partition, epoch }) => ownership.epochOf(partition) === epoch));
  if (failures.length > 0) throw failures[0];
}

async function recover(deps: TakeoverDeps, record: PartitionRecord): Promise<PartitionState> {
  const { history: options, partitions } = deps;
  const share = (bound: number): number => Math.ceil(bound / partitions);
  const memory = emptyMemory(options.windowMs, share(LIMITS.dedupe_ids_exact_max));
  const history = await deps.store.partitionHistory(record, options, memory);
  return rebuild(record, history, memory, {
    logBase: options.logBase,
    limits: {
      graceMs: deps.graceMs,
      idleMs: deps.idleMs,
      openMax: share(LIMITS.open_traces_max),
      doneMax: share(LIMITS.done_traces_max),
      callIdsMax: share(LIMITS.call_ids_max),
    },
    inputs: new JudgedInputs((org_id) => deps.isJudged(org_id), share(LIMITS.judged_bytes_max)),
    now: Date.now(),
  });
}
