// Tail sampling: what of a trace is stored in full is decided when the trace is complete, by all of its spans.
// In: the events of the owned partitions in log order, and the traces that are complete. Out: the events that are decided, each
// once, marked full or summary.
//
// Every keep rule holds for good once it holds, and the rate is a matter of the trace id. So a trace that is kept is known at
// once, and its events pass; held is only what would be summarised so far, until its trace is complete, a rule holds after all,
// or there is no more room: then the oldest trace is decided as it stands. Once decided, a trace stays decided: what comes later
// follows it, but for an event that a rule of its own keeps, and from then on its trace. Nothing of a held trace has a row, so after
// a crash it is held again from the log; a trace with any row was decided, and as its rows say.
import { eventIdentity } from '../domain/traces/event_identity.ts';
import { emptyDraft } from '../domain/judging/judged_draft.ts';
import { addEvent } from '../judging/rule_inputs.ts';
import { type BookEvent, traceKey } from './open_traces.ts';
import type { PartitionState } from '../worker/partition_state.ts';
import type { LogPosition, Retain, MeteredEvent } from '../stage.ts';
import { bounds, type HeldTrace, type LandingEvent, type LogRead } from './buffered_traces.ts';

export interface TailLimits {
  /** Traces held by a worker. */
  slots: number;
  /** Estimated memory of all of them, and of one. */
  bytes: number;
  traceBytes: number;
  /** How much of the log may be read after the oldest event held: this much is read again after a crash. */
  read: LogRead;
  /** How long a trace may be held, milliseconds: one that never rests is decided then. */
  holdMs: number;
  /** A trace that lasts longer is kept, milliseconds. */
  slowMs: number;
}

/** Why a trace is decided before it is complete. */
type Shortage = 'evicted_slots' | 'evicted_bytes' | 'evicted_read' | 'evicted_age';

export class TailSampler {
  readonly #limits: TailLimits;
  readonly #read: LogRead = { events: 0, bytes: 0 };

  constructor(limits: TailLimits) {
    this.#limits = limits;
  }

  /** Counts what was read of the log. */
  countRead(events: number, bytes: number): void {
    this.#read.events += events;
    this.#read.bytes += bytes;
  }

  /**
   * Takes the next event into the book of its partition, and adds to `decided` what is decided by it: the event, its whole trace,
   * the oldest trace of any partition that has no more room, or nothing yet.
   */
  take(states: readonly PartitionState[], state: PartitionState, one: LandingEvent, decided: LandingEvent[]): void {
    const key = traceKey(one.event.org_id, one.event.trace_id);
    const held = state.tail.find(key);
    const decision = this.#decide(state, key, one.event, held);
    if (decision === null) {
      state.book.apply(one.event, true);
      const trace = state.tail.hold(key, one, this.#read);
      if (trace.bytes > this.#limits.traceBytes) release(state, trace, 'summary', 'evicted_bytes', decided);
      this.#makeRoom(states, null, decided);
      return;
    }
    if (held !== undefined) release(state, held, decision.retain, decision.reason, decided);
    const event = marked(one.event, decision.retain, decision.reason);
    state.book.apply(event);
    decided.push({ event, source: one.source });
  }

  /** After a batch and the passing of time: decides the traces that are complete by now, and the oldest where there is no room. */
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
      const full = this.#shortage(states);
      // The oldest stands first where it has grown too old as well: traces are held in the order of the log.
      const oldest = full === null && now === null ? null : oldestOf(states);
      const shortage = full ?? (oldest === null || now === null ? null : this.#overdue(oldest.trace, now));
      if (oldest === null || shortage === null) return;
      release(oldest.state, oldest.trace, 'summary', shortage, decided);
    }
  }

  #decide(
    state: PartitionState,
    key: string,
    event: MeteredEvent,
    held: HeldTrace | undefined,
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

  #overdue({ read, since }: HeldTrace, now: number): Shortage | null {
    const { events, bytes } = this.#limits.read;
    if (this.#read.events - read.events > events || this.#read.bytes - read.bytes > bytes) return 'evicted_read';
    return now - since > this.#limits.holdMs ? 'evicted_age' : null;
  }
}

/** Ids of those events that are held from another place of the log: the store does not know them yet. */
export function heldAmong(
  states: ReadonlyMap<number, Pick<PartitionState, 'tail'>>,
  events: readonly (LogPosition & { org_id: string; trace_id: string; event_hex: string })[],
): string[] {
  return events
    .filter(
      (event) => states.get(event.partition)?.tail.holdsOther(traceKey(event.org_id, event.trace_id), event) === true,
    )
    .map(eventIdentity);
}

/**
 * What the rows that a former owner has landed say of an event that is read again; null where they say nothing.
 * @param isKept whether a rule of its own keeps it: what comes later follows it
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
 * Completes what judges will see of the traces that were held until now: what came while their org had no judges is neither in their
 * drafts nor in the store.
 * @param decided by the batch that completes them
 */
export function withReleased<T extends BookEvent>(told: readonly T[], decided: readonly LandingEvent[]): T[] {
  const wanted = new Map<string, LandingEvent[]>();
  for (const { complete } of told)
    if (complete !== undefined && complete.stored_through > 0 && !complete.restored)
      wanted.set(traceKey(complete.state.org_id, complete.state.trace_id), []);
  if (wanted.size === 0) return [...told];
  for (const one of decided)
    if (one.wasHeld === true) wanted.get(traceKey(one.event.org_id, one.event.trace_id))?.push(one);
  return told.map((event) => {
    const { complete } = event;
    const released =
      complete === undefined ? [] : (wanted.get(traceKey(complete.state.org_id, complete.state.trace_id)) ?? []);
    if (complete === undefined || released.length === 0) return event;
    const draft = complete.draft ?? emptyDraft();
    for (const one of released) if (one.event.log_seq <= complete.stored_through) addEvent(draft, one.event);
    return { ...event, complete: { ...complete, draft, stored_through: 0 } };
  });
}

function oldestOf(states: readonly PartitionState[]): { state: PartitionState; trace: HeldTrace } | null {
  let oldest: { state: PartitionState; trace: HeldTrace } | null = null;
  for (const state of states) {
    const trace = state.tail.oldest;
    if (trace !== undefined && (oldest === null || trace.log_seq < oldest.trace.log_seq)) oldest = { state, trace };
  }
  return oldest;
}

function release(
  state: PartitionState,
  { key }: HeldTrace,
  retain: Retain,
  reason: string,
  decided: LandingEvent[],
): void {
  state.book.release(key);
  for (const { event, source } of state.tail.release(key)?.events ?? [])
    decided.push({ event: marked(event, retain, reason), source, wasHeld: true });
}

function marked(event: MeteredEvent, retain: Retain, sample_reason: string): MeteredEvent {
  return event.retain === retain && event.sample_reason === sample_reason ? event : { ...event, retain, sample_reason };
}
