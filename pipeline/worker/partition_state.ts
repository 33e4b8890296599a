// What a worker holds in memory for a partition that it owns, and how it is built when the partition is taken over.
// Nothing here is the only copy: all of it comes back from the store and the log.
import type { TraceBookLimits } from '../traces/open_traces.ts';
import { TraceBook, type StoredTrace } from '../traces/open_traces.ts';
import type { JudgedInputs } from '../judging/rule_inputs.ts';
import { TraceFilter } from '../traces/trace_filter.ts';
import type { LogPosition } from '../stage.ts';
import { Forgotten } from '../stages/forgotten.ts';
import { IdWindow } from '../stages/id_window.ts';
import { HeldTraces } from '../traces/buffered_traces.ts';
import type { PartitionRecord } from './ownership.ts';

const TRIM_EVERY_IDS = 1_000_000;

/**
 * From where in the log on a trace is stored in full: from its beginning (log_seq 0) where it was kept; where it was summarised from
 * the first event that a rule of its own kept, if there is one (else log_seq is Infinity).
 */
export type FullFrom = Pick<LogPosition, 'log_seq' | 'log_index'>;

/** Rows above the checkpoint that a former owner landed already. Log positions are the store's. */
export interface Replay {
  spans: ReadonlySet<string>;
  texts: ReadonlySet<string>;
  /** Usage has landed up to this position. */
  usage_through: number;
  /** What tail sampling made of the traces with such rows, by traceKey. */
  decided: Map<string, FullFrom>;
  /** Past this position nothing had landed. */
  until: number;
}

export interface PartitionState {
  partition: number;
  epoch: number;
  window: IdWindow;
  /** Traces and organizations that were erased while this worker owned the partition; a later owner finds no row of theirs to recall. */
  forgotten: Forgotten;
  book: TraceBook;
  tail: HeldTraces;
  replay: Replay | null;
  /** received_at of the newest event prepared, of any partition: the time of the log, milliseconds; 0 before the first. */
  heard_at: number;
  /**
   * JetStream sequences: taken from the reader up to, landed of what was taken up to, prepared up to, landed up to (in full, or held by
   * tail sampling with its usage landed), settled up to (nothing held), and as last written down. The first two count all messages that
   * the worker reads, the others the partition's own.
   */
  taken_through: number;
  read_through: number;
  prepared_through: number;
  landed_through: number;
  settled_through: number;
  completed_through: number;
  checkpointed: string;
  /** received_at of the newest event landed. */
  landed_at: number;
}

/** What the store knows of a partition. */
export interface PartitionHistory {
  spans: ReadonlySet<string>;
  texts: ReadonlySet<string>;
  usage_through: number;
  /** What tail sampling made of the traces with rows above the checkpoint, by traceKey; empty without it. */
  decided: Map<string, FullFrom>;
  /** Live rows that hold something newer than completed_through, oldest version first. */
  traces: readonly StoredTrace[];
}

/** What is recalled from the store one by one, as there may be many. */
export interface PartitionMemory {
  /** Halves of the identity of an event at or below the checkpoint; received_at in milliseconds. */
  id(high: number, low: number, receivedAt: number): void;
  /** Hash of a trace that has a row. */
  trace(hash: number): void;
}

/** An empty window and filter, and the way in; the window is kept within its bound while it fills. */
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
  /** What the store adds to JetStream sequences. */
  logBase: number;
  /** How long the id of an event is remembered. */
  windowMs: number;
  /** Whether tail sampling has to know its decisions. */
  tail: boolean;
}

export interface HistoryStore {
  partitionHistory(
    record: PartitionRecord,
    options: HistoryOptions,
    memory: PartitionMemory,
  ): Promise<PartitionHistory>;
}

export interface RebuildOptions {
  logBase: number;
  limits: TraceBookLimits;
  /** Where what judges will see is gathered. */
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
  const book = new TraceBook(record.partition, options.limits, known, options.inputs);
  const checkpoint = options.logBase + record.checkpoint;
  let until = Math.max(checkpoint, history.usage_through);
  for (const trace of history.traces) {
    // A landing above the checkpoint may have ended before its events were told: trace.started is told again.
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
    book,
    tail: new HeldTraces(),
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
