// The state that a worker keeps in memory for a partition that it owns, and how it is rebuilt on
// takeover.
//
// Nothing here is the only copy: all of it can be rebuilt from the store and the log.
import type { TraceBookLimits } from '../traces/open_traces.ts';
import { OpenTraces } from '../traces/open_traces.ts';
import type { StoredTrace } from '../traces/stored_trace.ts';
import type { JudgedInputs } from '../judging/rule_inputs.ts';
import { TraceFilter } from '../traces/trace_filter.ts';
import type { LogPosition } from '../stage.ts';
import { Forgotten } from '../stages/forgotten.ts';
import { IdWindow } from '../stages/id_window.ts';
import { KnownCalls } from '../stages/known_calls.ts';
import { TailBuffer } from '../traces/tail_buffer.ts';
import type { PartitionRecord } from '../../schemas/records/partition.ts';

const TRIM_EVERY_IDS = 1_000_000;

/**
 * Log position from which on a trace is stored in full: log_seq 0 for a trace that was kept; for a
 * summarized trace the first event that a keep rule kept, or log_seq Infinity if there is none.
 */
export type FullFrom = Pick<LogPosition, 'log_seq' | 'log_index'>;

/** Rows above the checkpoint that a former owner has landed. Positions are the store's. */
export interface Replay {
  spans: ReadonlySet<string>;
  texts: ReadonlySet<string>;
  /** Position up to which usage has landed. */
  usage_through: number;
  /** Decisions of tail sampling on the traces of these rows, by traceKey. */
  decided: Map<string, FullFrom>;
  /** Position after which nothing has landed. */
  until: number;
}

export interface PartitionState {
  partition: number;
  epoch: number;
  window: IdWindow;
  /**
   * Traces and organizations erased while this worker owned the partition. A later owner needs no
   * such list, because it finds no rows of them.
   */
  forgotten: Forgotten;
  /** Model calls of its traces that count. */
  calls: KnownCalls;
  book: OpenTraces;
  tail: TailBuffer;
  replay: Replay | null;
  /**
   * received_at of the newest event prepared, of any partition of the stream, in milliseconds: the time of the
   * log. 0 before the first event.
   */
  heard_at: number;
  // Positions in the log up to which messages have come to a step. taken_through and read_through count
  // all messages that the worker reads from the partition's stream, the others those of the partition.
  /** Taken from the reader. */
  taken_through: number;
  /** Taken, and landed if they were the partition's. */
  read_through: number;
  /** Prepared. */
  prepared_through: number;
  /** Landed in full, or buffered by tail sampling with their usage landed. */
  landed_through: number;
  /** Landed in full: no event is buffered. The next checkpoint. */
  settled_through: number;
  /** Every trace is complete and its completion published. */
  completed_through: number;
  /** The two positions of the last checkpoint written, as a mark; empty before the first. */
  checkpointed: string;
  /** received_at of the newest landed event, in milliseconds; 0 before the first. */
  landed_at: number;
}

/** What the store knows of a partition. */
export interface PartitionHistory {
  spans: ReadonlySet<string>;
  texts: ReadonlySet<string>;
  usage_through: number;
  /**
   * Decisions of tail sampling on the traces with rows above the checkpoint, by traceKey; empty
   * without tail sampling.
   */
  decided: Map<string, FullFrom>;
  /** Live rows of traces with something newer than completed_through, oldest version first. */
  traces: readonly StoredTrace[];
}

/** Receives what a takeover reads back from the store one by one, because there may be many. */
export interface PartitionMemory {
  /**
   * Receives the two halves of the identity of an event at or below the checkpoint, and its
   * received_at in milliseconds.
   */
  id(high: number, low: number, receivedAt: number): void;
  /** Receives the hash of a trace that has a row. */
  trace(hash: number): void;
}

/**
 * Returns an empty window and an empty filter, with the receiver that fills them. The window stays
 * within its bound while it is filled.
 */
export function emptyMemory(
  windowMs: number,
  idsExactMax: number,
): PartitionMemory & { window: IdWindow; forgotten: Forgotten; known: TraceFilter } {
  const window = new IdWindow(windowMs, idsExactMax);
  const known = new TraceFilter();
  let recalled = 0;
  return {
    window,
    forgotten: new Forgotten(windowMs, idsExactMax),
    known,
    id(high, low, receivedAt) {
      window.addHalves(high, low, receivedAt);
      recalled += 1;
      if (recalled % TRIM_EVERY_IDS === 0) window.trim();
    },
    trace(hash) {
      known.add(hash);
    },
  };
}

export interface HistoryOptions {
  /** Offset that turns positions in the log into log positions of the store. */
  logBase: number;
  /** How long the dedupe window remembers an event id, in milliseconds. */
  windowMs: number;
  /** True if tail sampling needs the decisions of the former owner. */
  tail: boolean;
}

/** Reads of the store for partitions that were claimed, at least one a call. Their failures are StoreUnavailable. */
export interface HistoryStore {
  /**
   * Gives the memory of each partition the ids of its dedupe window and the hashes of its traces.
   * Former owners may still write meanwhile: what they write is above the checkpoint, and
   * `histories` reads it.
   *
   * @param memories by partition
   */
  recall(
    records: readonly PartitionRecord[],
    options: HistoryOptions,
    memories: ReadonlyMap<number, PartitionMemory>,
  ): Promise<void>;
  /** Returns at most `max` traces whose completion was not published, those with the newest rows first. */
  newestTraces(
    records: readonly PartitionRecord[],
    options: HistoryOptions,
    max: number,
  ): Promise<readonly { partition: number; org_id: string; trace_id: string }[]>;
  /** Returns what else the store knows, by partition. Call it when no former owner can write any more. */
  histories(
    records: readonly PartitionRecord[],
    options: HistoryOptions,
  ): Promise<ReadonlyMap<number, PartitionHistory>>;
}

export interface RebuildOptions {
  logBase: number;
  /** `callIdsMax` is the maximum of ids of model calls in memory. */
  limits: TraceBookLimits & { callIdsMax: number };
  /** Gathers what judges will see. */
  inputs: JudgedInputs;
  now: number;
}

export function rebuild(
  record: PartitionRecord,
  history: PartitionHistory,
  { window, forgotten, known }: { window: IdWindow; forgotten: Forgotten; known: TraceFilter },
  options: RebuildOptions,
): PartitionState {
  window.trim();
  const book = new OpenTraces(record.partition, options.limits, known, options.inputs);
  const checkpoint = options.logBase + record.checkpoint;
  let until = Math.max(checkpoint, history.usage_through);
  for (const trace of history.traces) {
    // A landing above the checkpoint may have ended before its events were published, so
    // trace.started is published again, under the same id.
    book.restore(trace, { open: true, announce: trace.version > checkpoint, now: options.now });
    until = Math.max(until, trace.version);
  }
  for (const key of history.spans) until = Math.max(until, seqOf(key));
  for (const key of history.texts) until = Math.max(until, seqOf(key));
  return {
    partition: record.partition,
    epoch: record.epoch,
    window,
    forgotten,
    calls: new KnownCalls(options.limits.callIdsMax),
    book,
    tail: new TailBuffer(),
    replay: until > checkpoint ? { ...replayOf(history), until } : null,
    heard_at: 0,
    taken_through: record.checkpoint,
    read_through: record.checkpoint,
    prepared_through: record.checkpoint,
    landed_through: record.checkpoint,
    settled_through: record.checkpoint,
    completed_through: record.completed_through,
    checkpointed: '',
    landed_at: 0,
  };
}

const replayOf = ({ spans, texts, usage_through, decided }: PartitionHistory): Omit<Replay, 'until'> => ({
  spans,
  texts,
  usage_through,
  decided,
});

const seqOf = (key: string): number => Number(key.slice(0, key.indexOf(':')));
