// Tail sampling: decides by all spans of a trace, once it is complete, whether its events are
// stored in full.
//
// It takes the events of the owned partitions in log order, and the complete traces. It returns
// each event once, when it is decided, marked full or summary. A keep rule that applies to a trace
// applies from then on, and the rate depends on the trace id alone. So a trace that is kept is
// known at once, and its events pass. The tail buffer holds only traces that would be summarized so
// far, until the trace is complete, a rule applies after all, or the buffer is full; then the
// oldest trace is decided as it stands.
//
// A decision is final: later events of a trace follow it, except that an event which a rule keeps
// by itself also makes the later ones kept. A buffered trace has no row, so after a crash it is
// buffered again from the log. A trace with any row was decided, and its rows tell how.
import { eventIdentity } from '../domain/traces/event_identity.ts';
import { emptyDraft } from '../domain/judging/judged_draft.ts';
import { addEvent } from '../judging/rule_inputs.ts';
import { traceKey } from '../domain/traces/ids.ts';
import type { TraceEvent } from './trace_events.ts';
import type { PartitionState } from '../worker/partition_state.ts';
import type { LogPosition, Retain, MeteredEvent } from '../stage.ts';
import { bounds, type BufferedTrace, type LandingEvent, type LogRead } from './tail_buffer.ts';

export interface TailLimits {
  /** Maximum buffered traces of a worker. */
  slots: number;
  /** Maximum estimated bytes of all buffered traces, and of one. */
  bytes: number;
  traceBytes: number;
  /**
   * How much of the log may be read after the oldest buffered event. A new owner replays this much
   * after a crash.
   */
  read: LogRead;
  /** Maximum time in the buffer, in milliseconds. A trace that never rests is decided then. */
  bufferMs: number;
  /** A trace that lasts longer is kept, in milliseconds. */
  slowMs: number;
}

/** Reason why a trace is decided before it is complete. */
type Shortage = 'evicted_slots' | 'evicted_bytes' | 'evicted_read' | 'evicted_age';

export class TailSampler {
  readonly #limits: TailLimits;
  readonly #read: LogRead = { events: 0, bytes: 0 };

  constructor(limits: TailLimits) {
    this.#limits = limits;
  }

  /** Counts events and bytes read from the log. */
  countRead(events: number, bytes: number): void {
    this.#read.events += events;
    this.#read.bytes += bytes;
  }

  /**
   * Adds the next event to the book of its partition, and adds to `decided` the events that this
   * decides: the event itself, its whole trace, the oldest trace of any partition if the buffer is
   * full, or none yet.
   */
  take(states: readonly PartitionState[], state: PartitionState, one: LandingEvent, decided: LandingEvent[]): void {
    const key = traceKey(one.event.org_id, one.event.trace_id);
    const held = state.tail.find(key);
    const decision = this.#decide(state, key, one.event, held);
    if (decision === null) {
      state.book.apply(one.event, true);
      const trace = state.tail.add(key, one, this.#read);
      if (trace.bytes > this.#limits.traceBytes) release(state, trace, 'summary', 'evicted_bytes', decided);
      this.#makeRoom(states, null, decided);
      return;
    }
    if (held !== undefined) release(state, held, decision.retain, decision.reason, decided);
    const event = marked(one.event, decision.retain, decision.reason);
    state.book.apply(event);
    decided.push({ event, source: one.source });
  }

  /**
   * Decides the traces that are complete by now, and the oldest ones while the buffer is full. Call
   * it after each batch, and as time passes.
   */
  settle(states: readonly PartitionState[], now: number, decided: LandingEvent[]): void {
    for (const state of states) {
      for (const key of state.book.takeSettled()) {
        const held = state.tail.find(key);
        if (held !== undefined) release(state, held, 'summary', 'profile', decided);
      }
    }
    this.#makeRoom(states, now, decided);
  }

  #makeRoom(states: readonly PartitionState[], now: number | null, decided: LandingEvent[]): void {
    for (;;) {
      const shortage = this.#shortage(states);
      const oldest = shortage === null ? null : oldestOf(states);
      if (oldest === null || shortage === null) break;
      release(oldest.state, oldest.trace, 'summary', shortage, decided);
    }
    if (now === null) return;
    // A partition buffers its traces in log order, so one that is too old is its oldest one.
    for (const state of states)
      for (let trace = state.tail.oldest; trace !== undefined; trace = state.tail.oldest) {
        const shortage = this.#overdue(trace, now);
        if (shortage === null) break;
        release(state, trace, 'summary', shortage, decided);
      }
  }

  #decide(
    state: PartitionState,
    key: string,
    event: MeteredEvent,
    held: BufferedTrace | undefined,
  ): { retain: Retain; reason: string } | null {
    const { retain, sample_reason: reason } = event;
    const isKept = retain === 'full' && reason !== 'profile';
    const landed = landedDecision(state, key, event, isKept);
    if (isKept) return { retain, reason };
    const before = landed ?? (held === undefined ? state.book.decided(key) : null);
    if (before !== null) return { retain: before, reason: 'trace' };
    if (retain === 'full') return { retain, reason };
    const { started_at, ended_at } = bounds(event, held);
    return ended_at - started_at > this.#limits.slowMs ? { retain: 'full', reason: 'slow' } : null;
  }

  #shortage(states: readonly PartitionState[]): Shortage | null {
    let held = 0;
    let bytes = 0;
    for (const { tail } of states) {
      held += tail.size;
      bytes += tail.bytes;
    }
    if (held > this.#limits.slots) return 'evicted_slots';
    return bytes > this.#limits.bytes ? 'evicted_bytes' : null;
  }

  #overdue({ read, since }: BufferedTrace, now: number): Shortage | null {
    const { events, bytes } = this.#limits.read;
    if (this.#read.events - read.events > events || this.#read.bytes - read.bytes > bytes) return 'evicted_read';
    return now - since > this.#limits.bufferMs ? 'evicted_age' : null;
  }
}

/**
 * Returns the identities of those events that are buffered from another log position. The store
 * does not know them yet.
 */
export function bufferedAmong(
  states: ReadonlyMap<number, Pick<PartitionState, 'tail'>>,
  events: readonly (LogPosition & { org_id: string; trace_id: string; event_hex: string })[],
): string[] {
  return events
    .filter(
      (event) => states.get(event.partition)?.tail.hasOther(traceKey(event.org_id, event.trace_id), event) === true,
    )
    .map(eventIdentity);
}

/**
 * Returns the decision on a replayed event that follows from rows of a former owner; null if there
 * is no such row.
 *
 * @param isKept true if a rule keeps the event by itself; later events of its trace follow it
 */
function landedDecision({ replay }: PartitionState, key: string, event: MeteredEvent, isKept: boolean): Retain | null {
  const from = replay?.decided.get(key);
  if (replay === null || from === undefined) return null;
  const { log_seq, log_index } = event;
  const isPast = log_seq > from.log_seq || (log_seq === from.log_seq && log_index >= from.log_index);
  if (isKept && !isPast) replay.decided.set(key, { log_seq, log_index });
  return isPast ? 'full' : 'summary';
}

/**
 * Completes what judges will see of the traces that were buffered until now. Events that came while
 * the organization had no judges are neither in the drafts nor in the store.
 *
 * @param decided events decided by the batch that completes the traces
 */
export function withReleased<T extends TraceEvent>(events: readonly T[], decided: readonly LandingEvent[]): T[] {
  const wanted = new Map<string, LandingEvent[]>();
  for (const { complete } of events)
    if (complete !== undefined && complete.stored_through > 0 && !complete.restored)
      wanted.set(traceKey(complete.state.org_id, complete.state.trace_id), []);
  if (wanted.size === 0) return [...events];
  for (const one of decided)
    if (one.wasBuffered === true) wanted.get(traceKey(one.event.org_id, one.event.trace_id))?.push(one);
  return events.map((event) => {
    const { complete } = event;
    const released =
      complete === undefined ? [] : (wanted.get(traceKey(complete.state.org_id, complete.state.trace_id)) ?? []);
    if (complete === undefined || released.length === 0) return event;
    const draft = complete.draft ?? emptyDraft();
    for (const one of released) if (one.event.log_seq <= complete.stored_through) addEvent(draft, one.event);
    return { ...event, complete: { ...complete, draft, stored_through: 0 } };
  });
}

/** Positions order only what one batch has read: streams of the log may advance at different rates. */
const isOlder = (one: BufferedTrace, other: BufferedTrace): boolean =>
  one.read.events === other.read.events ? one.log_seq < other.log_seq : one.read.events < other.read.events;

function oldestOf(states: readonly PartitionState[]): { state: PartitionState; trace: BufferedTrace } | null {
  let oldest: { state: PartitionState; trace: BufferedTrace } | null = null;
  for (const state of states) {
    const trace = state.tail.oldest;
    if (trace !== undefined && (oldest === null || isOlder(trace, oldest.trace))) oldest = { state, trace };
  }
  return oldest;
}

function release(
  state: PartitionState,
  { key }: BufferedTrace,
  retain: Retain,
  reason: string,
  decided: LandingEvent[],
): void {
  state.book.release(key);
  for (const { event, source } of state.tail.release(key)?.events ?? [])
    decided.push({ event: marked(event, retain, reason), source, wasBuffered: true });
}

function marked(event: MeteredEvent, retain: Retain, sample_reason: string): MeteredEvent {
  return event.retain === retain && event.sample_reason === sample_reason ? event : { ...event, retain, sample_reason };
}
