// The traces of one partition that are open, and the newest of those that are complete: a state machine without I/O.
// In: events in log order, and the passing of time. Out: rows of the traces table as pairs, and the events trace.started
// and trace.completed. A trace leaves memory only when its rows have been handed out and the next ones are taken; a late event of a
// trace that was forgotten needs its row from the store first (missing, then restore).
import { forcesTrace } from '../domain/traces/keep_rules.ts';
import type { Span } from '../domain/traces/span.ts';
import { addSpan, durationMs, emptyTrace, type TraceState } from '../domain/traces/trace_state.ts';
import type { MeteredEvent, Retain } from '../stage.ts';
import { traceCells, traceLine } from '../landing/row_encoders.ts';
import type { CompleteTrace, JudgedInputs } from '../judging/rule_inputs.ts';
import { TraceFilter, traceHash } from './trace_filter.ts';

export interface TraceBookLimits {
  /** Quiet time after which a trace with a root is complete, milliseconds. */
  graceMs: number;
  /** Quiet time after which a trace without a root is complete, milliseconds. */
  idleMs: number;
  /** Open traces held; past it the one that was quiet longest is completed at once. */
  openMax: number;
  /** Complete traces kept for their late events, beside those of the batch that is landing. */
  doneMax: number;
}

/** A trace's row as it came from the store. */
export interface StoredTrace {
  state: TraceState;
  /** log_seq of the newest message that the row holds. */
  version: number;
}

/** A wire row of the traces table; version is the one of the landing that writes it, for both rows of a pair. */
export interface TraceRow {
  line: string;
  org_id: string;
  trace_id: string;
  version: number;
}

export interface BookEvent {
  event: 'trace.started' | 'trace.completed' | 'judge.threshold_breach' | 'pii.match';
  org_id: string;
  trace_id: string;
  /** What tells it from others of its kind and trace; left out where there is one. */
  subject?: string;
  payload: Readonly<Record<string, unknown>>;
  /** Of trace.completed: what judges may look at. Left out where nobody judges it. */
  complete?: CompleteTrace;
}

interface Entry {
  key: string;
  state: TraceState;
  /** Messages up to this one are in the row that the store gave; 0 for a trace that began here. */
  restored_version: number;
  /** log_seq of the newest message in state. */
  version: number;
  /** The row handed out last, without its sign; empty before the first. */
  cells: string;
  /** received_at of the newest event, milliseconds. */
  heard_at: number;
  open: boolean;
  /** Tail sampling holds its events: it gets no row yet. */
  held: boolean;
}

/** A trace's key within its partition. */
export const traceKey = (orgId: string, traceId: string): string => `${orgId} ${traceId}`;

export class TraceBook {
  readonly #partition: number;
  readonly #limits: TraceBookLimits;
  /** Open traces by last hearing, oldest first: with a root, and without. */
  readonly #rooted = new Map<string, Entry>();
  readonly #rootless = new Map<string, Entry>();
  readonly #done = new Map<string, Entry>();
  readonly #known: TraceFilter;
  readonly #inputs: JudgedInputs | null;
  readonly #touched = new Set<Entry>();
  #settled: string[] = [];
  #events: BookEvent[] = [];

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

  /** Traces of these events whose rows have to be restored from the store before the events are applied. */
  missing(events: readonly { org_id: string; trace_id: string }[]): { org_id: string; trace_id: string }[] {
    const wanted = new Map<string, { org_id: string; trace_id: string }>();
    for (const { org_id, trace_id } of events) {
      const key = traceKey(org_id, trace_id);
      if (this.#find(key) === undefined && !wanted.has(key) && this.#known.mayHave(traceHash(org_id, trace_id)))
        wanted.set(key, { org_id, trace_id });
    }
    return [...wanted.values()];
  }

  /**
   * Takes a row back from the store.
   * @param open true when its completion is still to be told (a new owner after a crash), false for a late event's trace
   * @param announce true when trace.started has to be told again, as the landing was not checkpointed
   */
  restore({ state, version }: StoredTrace, options: { open: boolean; announce: boolean; now: number }): void {
    const entry: Entry = {
      key: traceKey(state.org_id, state.trace_id),
      state,
      restored_version: version,
      version,
      cells: traceCells(state, this.#partition, version),
      heard_at: options.now,
      open: options.open,
      held: false,
    };
    this.#known.add(traceHash(state.org_id, state.trace_id));
    this.#place(entry);
    if (options.announce) this.#events.push(started(state));
  }

  /** What sampling has made of a trace, by its key; null for one that is held, or not in memory. */
  decided(key: string): Retain | null {
    const entry = this.#find(key);
    if (entry === undefined || entry.held) return null;
    return entry.state.sampled ? 'full' : 'summary';
  }

  /** Returns the log_seq of the first message that forces a trace to be kept, by its key; null for none, or a trace not in memory. */
  forcedFrom(key: string): number | null {
    const from = this.#find(key)?.state.forced_from ?? 0;
    return from === 0 ? null : from;
  }

  /** Gives a held trace its row. */
  release(key: string): void {
    const entry = this.#find(key);
    if (entry !== undefined) entry.held = false;
  }

  /**
   * Adds an event's spans to its trace. Events that a restored row holds already change nothing.
   * @param held true when the event, as all of its trace before it, is held by tail sampling
   */
  apply(event: MeteredEvent, held = false): void {
    const [first] = event.spans;
    if (first === undefined) return;
    const key = traceKey(event.org_id, event.trace_id);
    const entry = this.#find(key) ?? this.#begin(key, first);
    if (event.log_seq <= entry.restored_version) return;
    if (entry.open) this.#inputs?.add(key, { version: entry.version, spans: entry.state.spans }, event);
    for (const span of event.spans) addSpan(entry.state, span, event.retain === 'full');
    if (entry.state.forced_from === 0 && event.spans.some(forcesTrace)) entry.state.forced_from = event.log_seq;
    entry.version = event.log_seq;
    entry.held = held;
    entry.heard_at = Math.max(entry.heard_at, event.received_at);
    if (entry.cells === '' && !this.#touched.has(entry)) this.#events.push(started(entry.state));
    this.#touched.add(entry);
    this.#place(entry);
  }

  /**
   * Corrects what a trace has cost. A trace without a row has nothing to correct; what a restored row holds already changes
   * nothing.
   * @param heardAt keeps an open trace open for as long as an event would, so that open traces stay in the order of their versions
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

  /** Rows for all traces that changed since the last call, but for those held: the old row taken back, the new one put. */
  takeRows(): TraceRow[] {
    const rows: TraceRow[] = [];
    const handedOut = new Set<string>();
    for (const entry of this.#touched) {
      if (entry.held) continue;
      this.#touched.delete(entry);
      handedOut.add(entry.key);
      const { state, version } = entry;
      const place = { org_id: state.org_id, trace_id: state.trace_id, version };
      if (entry.cells !== '') rows.push({ line: traceLine(entry.cells, -1), ...place });
      entry.cells = traceCells(state, this.#partition, version);
      rows.push({ line: traceLine(entry.cells, 1), ...place });
    }
    this.#forget(handedOut);
    return rows;
  }

  /** Completes the traces that have been quiet for long enough, and those past the bound. */
  tick(now: number): void {
    this.#completeQuiet(this.#rooted, now - this.#limits.graceMs);
    this.#completeQuiet(this.#rootless, now - this.#limits.idleMs);
    while (this.openCount > this.#limits.openMax) {
      const oldest = this.#oldest();
      if (oldest === undefined) return;
      this.#complete(oldest);
    }
  }

  /**
   * Drops traces that are erased from the store, between two batches: they are not told as complete, and what comes of them later
   * begins anew.
   */
  forget(org_id: string, traceIds: readonly string[]): void {
    for (const trace_id of traceIds) {
      const key = traceKey(org_id, trace_id);
      const entry = this.#find(key);
      // Nothing of one that is held is in the store yet, and its events still need it.
      if (entry === undefined || entry.held) continue;
      for (const map of [this.#rooted, this.#rootless, this.#done]) map.delete(key);
      this.#touched.delete(entry);
      this.#inputs?.take(key, org_id, entry.version);
    }
  }

  /** Drops every trace of an organization, held ones too, between two batches: no row of it is written any more. */
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

  /** Drops complete traces, between two batches, when all that was handed out has landed: what comes of them is added to what the store has. */
  forgetComplete(): void {
    this.#done.clear();
  }

  /** Keeps what judges will see of open traces within its bound. @param landedThrough log_seq up to which everything has landed */
  trimInputs(landedThrough: number): void {
    this.#inputs?.trim(landedThrough, (key) => this.#find(key)?.held === true);
  }

  /** Keys of the held traces that became complete since the last call: what they are is to be decided before their rows are taken. */
  takeSettled(): string[] {
    const settled = this.#settled;
    this.#settled = [];
    return settled;
  }

  takeEvents(): BookEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  /**
   * The log position up to which every trace is complete: a trace whose row holds nothing newer has been told.
   * @param landedThrough log_seq up to which everything has landed
   */
  completedThrough(landedThrough: number): number {
    let through = landedThrough;
    for (const map of [this.#rooted, this.#rootless]) {
      // Entries are in the order of their last hearing, so the first has the smallest version.
      const first = map.values().next();
      if (first.done !== true) through = Math.min(through, first.value.version - 1);
    }
    return through;
  }

  /** When the next trace may become complete, milliseconds since the epoch; null when none is open. */
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

  #begin(key: string, first: Span): Entry {
    this.#known.add(traceHash(first.org_id, first.trace_id));
    return {
      key,
      state: emptyTrace(first),
      restored_version: 0,
      version: 0,
      cells: '',
      heard_at: first.received_at,
      open: true,
      held: false,
    };
  }

  #place(entry: Entry): void {
    this.#rooted.delete(entry.key);
    this.#rootless.delete(entry.key);
    if (!entry.open) {
      this.#keepDone(entry);
      return;
    }
    (entry.state.root_at === null ? this.#rootless : this.#rooted).set(entry.key, entry);
  }

  #completeQuiet(map: Map<string, Entry>, quietSince: number): void {
    for (const entry of map.values()) {
      if (entry.heard_at > quietSince) return;
      this.#complete(entry);
    }
  }

  #complete(entry: Entry): void {
    this.#rooted.delete(entry.key);
    this.#rootless.delete(entry.key);
    entry.open = false;
    if (entry.held) this.#settled.push(entry.key);
    this.#events.push({ ...completed(entry), ...this.#judgedOf(entry) });
    this.#keepDone(entry);
  }

  #judgedOf({ key, state, version, restored_version }: Entry): Pick<BookEvent, 'complete'> {
    const input = this.#inputs?.take(key, state.org_id, version) ?? null;
    return input === null ? {} : { complete: { ...input, state, version, restored: restored_version > 0 } };
  }

  #keepDone(entry: Entry): void {
    this.#done.delete(entry.key);
    this.#done.set(entry.key, entry);
  }

  /**
   * Only between two batches: what was restored for a batch has to be there when its events are applied. Rows that are handed out now
   * land beside the next batch, which would not find them in the store yet.
   */
  #forget(handedOut: ReadonlySet<string>): void {
    for (const key of this.#done.keys()) {
      if (this.#done.size <= this.#limits.doneMax) return;
      if (!handedOut.has(key)) this.#done.delete(key);
    }
  }

  #oldest(): Entry | undefined {
    const heads = [this.#rooted.values().next(), this.#rootless.values().next()].flatMap((head) =>
      head.done === true ? [] : [head.value],
    );
    return heads.sort((a, b) => a.heard_at - b.heard_at)[0];
  }
}

function started(state: TraceState): BookEvent {
  return {
    event: 'trace.started',
    org_id: state.org_id,
    trace_id: state.trace_id,
    payload: {
      event: 'trace.started',
      trace_id: state.trace_id,
      agent_id: state.agent_id === '' ? null : state.agent_id,
      started_at: new Date(state.started_at).toISOString(),
      org_id: state.org_id,
    },
  };
}

function completed({ state }: Entry): BookEvent {
  return {
    event: 'trace.completed',
    org_id: state.org_id,
    trace_id: state.trace_id,
    payload: {
      event: 'trace.completed',
      trace_id: state.trace_id,
      outcome: state.outcome,
      duration_ms: durationMs(state),
      input_tokens: state.input_tokens,
      output_tokens: state.output_tokens,
      cost_usd: Number(state.cost_pico_usd) / 1e12,
      judge_scores: {},
    },
  };
}
