// The open traces of one partition, and the newest of the complete ones: a state machine without
// I/O.
//
// It takes events in log order and the passing of time. It returns rows of the traces table as
// pairs, and the events trace.started and trace.completed. A trace leaves memory only once its rows
// have landed. A late event of a trace that left memory needs the trace's row from the store first (see
// `missing` and `restore`). A trace that begins with a backfilled event is complete from then on, and
// has no events.
import { isPromptRecord } from '../domain/decode/otlp_log_names.ts';
import { forcesTrace } from '../domain/traces/keep_rules.ts';
import type { Span } from '../domain/traces/span.ts';
import { traceKey } from '../domain/traces/ids.ts';
import { addEvent, emptyTrace } from '../domain/traces/trace_state.ts';
import type { MeteredEvent, Retain } from '../stage.ts';
import { signedTrace, traceCells } from '../landing/row_encoders.ts';
import type { JudgedInputs } from '../judging/rule_inputs.ts';
import type { StoredTrace } from './stored_trace.ts';
import type { Entry, TraceRow } from './trace_entry.ts';
import { type TraceEvent, completed, started } from './trace_events.ts';
import { TraceFilter, traceHash } from './trace_filter.ts';

export interface TraceBookLimits {
  /** Quiet time after which a trace with a root is complete, in milliseconds. */
  graceMs: number;
  /** Quiet time after which a trace without a root is complete, in milliseconds. */
  idleMs: number;
  /** Maximum open traces. Beyond it, the trace that was quiet longest is completed at once. */
  openMax: number;
  /**
   * Maximum complete traces kept for their late events, beside those of batches that are landing.
   */
  doneMax: number;
  /**
   * Maximum traces of a former owner with judges that one tick completes. They are read from the store
   * before the rows of their batch land.
   */
  judgedFromStoreMax: number;
}

export class OpenTraces {
  readonly #partition: number;
  readonly #limits: TraceBookLimits;
  /** Open traces with a root, and without one, by the time of their newest event, oldest first. */
  readonly #rooted = new Map<string, Entry>();
  readonly #rootless = new Map<string, Entry>();
  readonly #done = new Map<string, Entry>();
  readonly #known: TraceFilter;
  readonly #inputs: JudgedInputs | null;
  readonly #touched = new Set<Entry>();
  #settled: string[] = [];
  #events: TraceEvent[] = [];

  constructor(
    partition: number,
    limits: TraceBookLimits,
    known: TraceFilter = new TraceFilter(),
    inputs: JudgedInputs | null = null,
  ) {
    this.#partition = partition;
    this.#limits = limits;
    this.#known = known;
    this.#inputs = inputs;
  }

  get openCount(): number {
    return this.#rooted.size + this.#rootless.size;
  }

  /**
   * Returns the traces of these events whose rows must be restored from the store before the events
   * are applied.
   */
  missing(events: readonly { org_id: string; trace_id: string }[]): { org_id: string; trace_id: string }[] {
    const wanted = new Map<string, { org_id: string; trace_id: string }>();
    for (const { org_id, trace_id } of events) {
      const key = traceKey(org_id, trace_id);
      if (this.#find(key) === undefined && !wanted.has(key) && this.#known.mayHave(traceHash(org_id, trace_id)))
        wanted.set(key, { org_id, trace_id });
    }
    return [...wanted.values()];
  }

  /** Returns whether a trace is in memory, by its key. */
  remembers(key: string): boolean {
    return this.#find(key) !== undefined;
  }

  /** Returns whether the store may have spans of a trace that this worker did not land. */
  mayBeStored(org_id: string, trace_id: string): boolean {
    const entry = this.#find(traceKey(org_id, trace_id));
    return entry === undefined ? this.#known.mayHave(traceHash(org_id, trace_id)) : entry.restored_version > 0;
  }

  /**
   * Adds a trace whose row was read from the store.
   * @param open true if its completion was not published yet (on takeover), false for the trace of
   * a late event
   * @param announce true to publish trace.started again, because the landing was not checkpointed
   */
  restore({ state, version }: StoredTrace, options: { open: boolean; announce: boolean; now: number }): void {
    const entry: Entry = {
      key: traceKey(state.org_id, state.trace_id),
      state,
      restored_version: version,
      version,
      cells: traceCells(state, this.#partition, version),
      heard_at: options.now,
      open: options.open && !state.backfilled,
      buffered: false,
    };
    this.#known.add(traceHash(state.org_id, state.trace_id));
    this.#place(entry);
    if (options.announce && !state.backfilled) this.#events.push(started(state));
  }

  /**
   * Returns how sampling has decided a trace, by its key; null for a trace that is buffered or not
   * in memory.
   */
  decided(key: string): Retain | null {
    const entry = this.#find(key);
    if (entry === undefined || entry.buffered) return null;
    return entry.state.sampled ? 'full' : 'summary';
  }

  /**
   * Returns the log_seq of the first message that forces a trace to be kept, by its key; null if
   * there is none, or the trace is not in memory.
   */
  forcedFrom(key: string): number | null {
    const from = this.#find(key)?.state.forced_from ?? 0;
    return from === 0 ? null : from;
  }

  /** Marks a trace as no longer buffered, so that it gets a row. */
  release(key: string): void {
    const entry = this.#find(key);
    if (entry !== undefined) entry.buffered = false;
  }

  /**
   * Adds the spans of an event to its trace. Events that a restored row already includes change
   * nothing.
   * @param buffered true if tail sampling buffers the event, and with it the whole trace so far
   */
  apply(event: MeteredEvent, buffered = false): void {
    const [first] = event.spans;
    if (first === undefined) return;
    const key = traceKey(event.org_id, event.trace_id);
    const entry = this.#find(key) ?? this.#begin(key, first, event.backfill ?? false);
    if (event.log_seq <= entry.restored_version) return;
    if (entry.open) this.#inputs?.add(key, { version: entry.version, spans: entry.state.spans }, event);
    addEvent(entry.state, event);
    if (entry.state.forced_from === 0 && event.spans.some(forcesTrace)) entry.state.forced_from = event.log_seq;
    entry.version = event.log_seq;
    entry.buffered = buffered;
    entry.heard_at = Math.max(entry.heard_at, event.received_at);
    if (entry.cells === null && !this.#touched.has(entry) && !entry.state.backfilled)
      this.#events.push(started(entry.state));
    this.#touched.add(entry);
    this.#place(entry);
  }

  /**
   * Corrects the cost of a trace. A trace without a row has nothing to correct, and a correction
   * that a restored row already includes changes nothing.
   * @param heardAt keeps an open trace open for as long as an event would, so that open traces stay
   * in the order of their versions
   */
  correct(
    org_id: string,
    trace_id: string,
    { log_seq, cost_pico_usd, heardAt }: { log_seq: number; cost_pico_usd: bigint; heardAt: number },
  ): void {
    const entry = this.#find(traceKey(org_id, trace_id));
    if (entry === undefined || log_seq <= entry.restored_version) return;
    entry.state.cost_pico_usd += cost_pico_usd;
    entry.version = log_seq;
    entry.heard_at = Math.max(entry.heard_at, heardAt);
    this.#touched.add(entry);
    this.#place(entry);
  }

  /**
   * Returns rows for all traces that changed since the last call, except buffered ones: one that
   * cancels the old row, and the new row.
   *
   * @param landedThrough log_seq up to which everything that was taken before has landed
   */
  takeRows(landedThrough = Infinity): TraceRow[] {
    const rows: TraceRow[] = [];
    const handedOut = new Set<string>();
    for (const entry of this.#touched) {
      if (entry.buffered) continue;
      this.#touched.delete(entry);
      handedOut.add(entry.key);
      const { state, version } = entry;
      const place = { org_id: state.org_id, trace_id: state.trace_id, version };
      if (entry.cells !== null) rows.push({ wire: signedTrace(entry.cells, -1), ...place });
      entry.cells = traceCells(state, this.#partition, version);
      rows.push({ wire: signedTrace(entry.cells, 1), ...place });
    }
    this.#forget(handedOut, landedThrough);
    return rows;
  }

  /**
   * Completes the traces that have been quiet long enough, and the oldest ones beyond the bound. Traces
   * beyond judgedFromStoreMax stay open until the next tick.
   *
   * @param replaying true if a partition of the batch was just taken over: no trace is read from the
   * store then, so that the rows of the batch land soon
   */
  tick(now: number, replaying = false): void {
    const left = { reads: replaying ? 0 : this.#limits.judgedFromStoreMax };
    this.#completeQuiet(this.#rooted, now - this.#limits.graceMs, left);
    this.#completeQuiet(this.#rootless, now - this.#limits.idleMs, left);
    while (this.openCount > this.#limits.openMax) {
      const oldest = this.#oldest();
      if (oldest === undefined) return;
      this.#complete(oldest);
    }
  }

  /**
   * Drops traces that are erased from the store, between two batches. Their completion is not
   * published, and later events begin a new trace.
   */
  forget(org_id: string, traceIds: readonly string[]): void {
    for (const trace_id of traceIds) {
      const key = traceKey(org_id, trace_id);
      const entry = this.#find(key);
      // A buffered trace has nothing in the store yet, and its events still need it.
      if (entry === undefined || entry.buffered) continue;
      for (const map of [this.#rooted, this.#rootless, this.#done]) map.delete(key);
      this.#touched.delete(entry);
      this.#inputs?.take(key, org_id, entry.version);
    }
  }

  /**
   * Drops every trace of an organization, including buffered ones, between two batches. No row of
   * it is written from then on.
   */
  forgetOrg(org_id: string): void {
    const ownKeys = traceKey(org_id, '');
    for (const map of [this.#rooted, this.#rootless, this.#done])
      for (const [key, entry] of map) {
        if (!key.startsWith(ownKeys)) continue;
        map.delete(key);
        this.#touched.delete(entry);
        this.#inputs?.take(key, org_id, entry.version);
      }
  }

  /**
   * Drops complete traces between two batches, when all rows returned have landed. A late event
   * then restores its trace from the store.
   */
  forgetComplete(): void {
    this.#done.clear();
  }

  /**
   * Trims what judges will see of open traces to its bound.
   *
   * @param landedThrough log_seq up to which everything has landed
   */
  trimInputs(landedThrough: number): void {
    this.#inputs?.trim(landedThrough, (key) => this.#find(key)?.buffered === true);
  }

  /**
   * Returns the keys of the buffered traces that became complete since the last call. They must be
   * decided before their rows are taken.
   */
  takeSettled(): string[] {
    const settled = this.#settled;
    this.#settled = [];
    return settled;
  }

  takeEvents(): TraceEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  /**
   * Returns the log position up to which every trace is complete: the completion of a trace whose
   * row includes nothing newer has been published.
   *
   * @param landedThrough log_seq up to which everything has landed
   */
  completedThrough(landedThrough: number): number {
    let through = landedThrough;
    for (const map of [this.#rooted, this.#rootless]) {
      // Traces are ordered by the time of their newest event, so the first has the smallest
      // version.
      const first = map.values().next();
      if (first.done !== true) through = Math.min(through, first.value.version - 1);
    }
    return through;
  }

  /**
   * Returns when the next trace may become complete, in milliseconds since the epoch; null if no
   * trace is open.
   */
  nextTickAt(): number | null {
    const rooted = this.#rooted.values().next();
    const rootless = this.#rootless.values().next();
    const times = [
      ...(rooted.done === true ? [] : [rooted.value.heard_at + this.#limits.graceMs]),
      ...(rootless.done === true ? [] : [rootless.value.heard_at + this.#limits.idleMs]),
    ];
    return times.length === 0 ? null : Math.min(...times);
  }

  #find(key: string): Entry | undefined {
    return this.#rooted.get(key) ?? this.#rootless.get(key) ?? this.#done.get(key);
  }

  #begin(key: string, first: Span, backfilled: boolean): Entry {
    this.#known.add(traceHash(first.org_id, first.trace_id));
    return {
      key,
      state: { ...emptyTrace(first), backfilled },
      restored_version: 0,
      version: 0,
      cells: null,
      heard_at: first.received_at,
      open: !backfilled,
      buffered: false,
    };
  }

  #place(entry: Entry): void {
    this.#rooted.delete(entry.key);
    this.#rootless.delete(entry.key);
    if (!entry.open) {
      this.#keepDone(entry);
      return;
    }
    // The record of a prompt begins its trace and says nothing about the end.
    const isEnding = entry.state.root_at !== null && !isPromptRecord(entry.state.root_span_name);
    (isEnding ? this.#rooted : this.#rootless).set(entry.key, entry);
  }

  #completeQuiet(map: Map<string, Entry>, quietSince: number, left: { reads: number }): void {
    for (const entry of map.values()) {
      if (entry.heard_at > quietSince) return;
      if (entry.restored_version > 0 && this.#inputs?.wants(entry.state.org_id) === true) {
        if (left.reads === 0) continue;
        left.reads -= 1;
      }
      this.#complete(entry);
    }
  }

  #complete(entry: Entry): void {
    this.#rooted.delete(entry.key);
    this.#rootless.delete(entry.key);
    entry.open = false;
    if (entry.buffered) this.#settled.push(entry.key);
    this.#events.push({ ...completed(entry.state), ...this.#judgedOf(entry) });
    this.#keepDone(entry);
  }

  #judgedOf({ key, state, version, restored_version }: Entry): Pick<TraceEvent, 'complete'> {
    const input = this.#inputs?.take(key, state.org_id, version) ?? null;
    if (input === null) return {};
    return { complete: { ...input, partition: this.#partition, state, version, restored: restored_version > 0 } };
  }

  #keepDone(entry: Entry): void {
    this.#done.delete(entry.key);
    this.#done.set(entry.key, entry);
  }

  /**
   * Drops complete traces beyond the bound. It runs only between two batches, because traces
   * restored for a batch must be in memory when its events are applied. Traces with rows in
   * `handedOut`, or of a batch that has not landed, stay, because further batches are prepared
   * meanwhile, which would not find those rows in the store yet.
   */
  #forget(handedOut: ReadonlySet<string>, landedThrough: number): void {
    for (const [key, { version }] of this.#done) {
      if (this.#done.size <= this.#limits.doneMax) return;
      if (!handedOut.has(key) && version <= landedThrough) this.#done.delete(key);
    }
  }

  #oldest(): Entry | undefined {
    const heads = [this.#rooted.values().next(), this.#rootless.values().next()].flatMap((head) =>
      head.done === true ? [] : [head.value],
    );
    return heads.sort((a, b) => a.heard_at - b.heard_at)[0];
  }
}
