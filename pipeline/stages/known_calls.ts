// The model calls of one partition that count, by trace and by the vendor's ids: a state machine
// without I/O, by which the stage match recognizes later records of a call.
//
// Calls of a trace that began while this worker owned the partition are complete in memory. Those of
// any other trace are read from the store once, before the first record that needs them. Beyond the
// bound, the traces that were quiet longest leave memory after everything of theirs has landed.
import { GATEWAY, isUsed, type CallRecord } from '../domain/traces/call_records.ts';
import type { CountedCall } from '../stage.ts';
import { traceKey } from '../domain/traces/ids.ts';

/** Maximum ids of one trace; beyond it, later records of its oldest calls are not recognized. */
const IDS_PER_TRACE_MAX = 10_000;

interface TraceCalls {
  byId: Map<string, CountedCall>;
  /** log_seq of the newest record of the trace. */
  newest: number;
}

/** The trace of a record and its position in the log. */
export interface RecordPlace {
  org_id: string;
  trace_id: string;
  log_seq: number;
}

/**
 * How a record counts: as a duplicate of another span; instead of the records that it replaces; or,
 * with none of both, by itself.
 */
interface CallMatch {
  duplicate_of: string | null;
  replaced: readonly CountedCall[];
}
const COUNTS: CallMatch = Object.freeze({ duplicate_of: null, replaced: Object.freeze([]) });

/** What is known of the traces of a partition. */
export interface TraceMemory {
  /** Returns whether the store may have spans of a trace that this worker did not land. */
  mayBeStored(org_id: string, trace_id: string): boolean;
  /** Returns whether a trace is in memory, by its traceKey. */
  remembers(key: string): boolean;
}

export class KnownCalls {
  readonly #idsMax: number;
  /** By trace, quiet longest first. */
  readonly #traces = new Map<string, TraceCalls>();
  /** Traces that left memory here while the book still has them. */
  readonly #dropped = new Set<string>();
  #size = 0;

  /** @param idsMax ids held before the traces that were quiet longest leave memory */
  constructor(idsMax: number) {
    this.#idsMax = idsMax;
  }

  /** Number of ids held. */
  get size(): number {
    return this.#size;
  }

  /** Returns whether calls of the trace may have landed that are not in memory. */
  needsStore({ org_id, trace_id }: RecordPlace, book: TraceMemory): boolean {
    const key = traceKey(org_id, trace_id);
    return !this.#traces.has(key) && (this.#dropped.has(key) || book.mayBeStored(org_id, trace_id));
  }

  /** Adds the calls of a trace that have landed before the first record that is taken of it. */
  restore(place: RecordPlace, calls: readonly CallRecord[]): void {
    const trace = this.#touch(place);
    for (const call of calls) this.#add(trace, call, call.source === GATEWAY);
  }

  /** Takes the next record in log order and returns how it counts. */
  take(place: RecordPlace, record: CallRecord): CallMatch {
    const trace = this.#touch(place);
    const known = record.ids.flatMap((id) => trace.byId.get(id) ?? []);
    const others = [...new Set(known)].filter(({ source }) => source !== record.source);
    if (record.source === GATEWAY) {
      this.#add(trace, record, true);
      return others.length === 0 ? COUNTS : { duplicate_of: null, replaced: others };
    }
    const counted = others.find(({ source }) => source === GATEWAY) ?? others[0];
    if (counted !== undefined) {
      this.#add(trace, { ...counted, ids: record.ids }, false);
      return { duplicate_of: counted.span_id, replaced: [] };
    }
    if (isUsed(record)) this.#add(trace, record, false);
    return COUNTS;
  }

  /** Drops erased traces between two batches. */
  forget(org_id: string, traceIds: readonly string[]): void {
    for (const trace_id of traceIds) this.#delete(traceKey(org_id, trace_id));
  }

  /** Drops the traces of an organization between two batches. */
  forgetOrg(org_id: string): void {
    const own = traceKey(org_id, '');
    for (const key of this.#traces.keys()) if (key.startsWith(own)) this.#delete(key);
  }

  /**
   * Keeps the ids within their bound, between two batches.
   *
   * @param settledThrough log_seq up to which everything has landed and nothing is buffered
   */
  trim(settledThrough: number, book: TraceMemory): void {
    for (const [key, { newest }] of this.#traces) {
      // A trace takes memory too, if none of its records counts.
      if (this.#size + this.#traces.size <= this.#idsMax || newest > settledThrough) break;
      this.#delete(key);
      if (book.remembers(key)) this.#dropped.add(key);
    }
    if (this.#dropped.size > this.#idsMax)
      for (const key of this.#dropped) if (!book.remembers(key)) this.#dropped.delete(key);
  }

  #touch({ org_id, trace_id, log_seq }: RecordPlace): TraceCalls {
    const key = traceKey(org_id, trace_id);
    const trace = this.#traces.get(key) ?? { byId: new Map<string, CountedCall>(), newest: log_seq };
    trace.newest = Math.max(trace.newest, log_seq);
    this.#traces.delete(key);
    this.#traces.set(key, trace);
    return trace;
  }

  /** @param replace true if the record counts instead of those that have its ids, except the gateway's own */
  #add(trace: TraceCalls, { ids, source, span_id, usage }: CallRecord, replace: boolean): void {
    const call = { source, span_id, usage };
    for (const id of ids) {
      const known = trace.byId.get(id);
      if (known !== undefined && (!replace || known.source === source)) continue;
      if (known === undefined) this.#size += 1;
      trace.byId.set(id, call);
    }
    for (const id of trace.byId.keys()) {
      if (trace.byId.size <= IDS_PER_TRACE_MAX) break;
      trace.byId.delete(id);
      this.#size -= 1;
    }
  }

  #delete(key: string): void {
    this.#size -= this.#traces.get(key)?.byId.size ?? 0;
    this.#traces.delete(key);
    this.#dropped.delete(key);
  }
}
