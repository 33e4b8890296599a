// What a worker holds in memory for a partition that it owns, and how it is built when the partition is taken over.
// Nothing here is the only copy: all of it comes back from the store and the log.
import type { TraceBookLimits } from './trace_book.ts';
import { TraceBook, type StoredTrace } from './trace_book.ts';
import type { JudgedInputs } from './judged_inputs.ts';
import { TraceFilter } from './trace_filter.ts';
import { IdWindow } from '../stages/dedupe/id_window.ts';
import type { PartitionRecord } from './ownership.ts';

const TRIM_EVERY_IDS = 1_000_000;

/** Rows above the checkpoint that a former owner landed already. Log positions are the store's. */
export interface Replay {
  spans: ReadonlySet<string>;
  texts: ReadonlySet<string>;
  /** Usage has landed up to this position. */
  usage_through: number;
  /** Past this position nothing had landed. */
  until: number;
}

export interface PartitionState {
  partition: number;
  epoch: number;
  window: IdWindow;
  book: TraceBook;
  replay: Replay | null;
  /** received_at of the newest event prepared, of any partition: the time of the log, milliseconds; 0 before the first. */
  heard_at: number;
  /** JetStream sequences: taken from the reader up to, prepared up to, landed up to, and as last written down. */
  taken_through: number;
  prepared_through: number;
  landed_through: number;
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
  /** Live rows that hold something newer than completed_through, oldest version first. */
  traces: readonly StoredTrace[];
}

/** What is recalled from the store one by one, as there may be many. */
export interface PartitionMemory {
  /** Halves of the id of an event at or below the checkpoint; received_at in milliseconds. */
  id(high: number, low: number, receivedAt: number): void;
  /** Hash of a trace that has a row. */
  trace(hash: number): void;
}

/** An empty window and filter, and the way in; the window is kept within its bound while it fills. */
export function emptyMemory(
  windowMs: number,
  idsExactMax: number,
  now: number,
): PartitionMemory & { window: IdWindow; known: TraceFilter } {
  const window = new IdWindow(windowMs, idsExactMax);
  const known = new TraceFilter();
  let recalled = 0;
  return {
    window,
    known,
    id(high, low, receivedAt) {
      window.addHalves(high, low, receivedAt);
      recalled += 1;
      if (recalled % TRIM_EVERY_IDS === 0) window.trim(now);
    },
    trace(hash) {
      known.add(hash);
    },
  };
}

export interface HistoryStore {
  /** @param logBase what the store adds to JetStream sequences */
  partitionHistory(record: PartitionRecord, logBase: number, windowMs: number, memory: PartitionMemory): Promise<PartitionHistory>;
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
  { window, known }: { window: IdWindow; known: TraceFilter },
  options: RebuildOptions,
): PartitionState {
  window.trim(options.now);
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
    book,
    replay: until > checkpoint ? { spans: history.spans, texts: history.texts, usage_through: history.usage_through, until } : null,
    heard_at: 0,
    taken_through: record.checkpoint,
    prepared_through: record.checkpoint,
    landed_through: record.checkpoint,
    completed_through: record.completed_through,
    checkpointed: '',
    landed_at: 0,
  };
}

const seqOf = (key: string): number => Number(key.slice(0, key.indexOf(':')));
