// Turns the log messages of a batch into rows: runs the stages, updates the open traces, and has
// completed traces judged.
//
// It takes whole messages of owned partitions in log order. It returns the rows of one landing, the
// dead letters, and the platform events to publish once the rows have landed. It writes nothing.
import { piiMatches } from '../domain/pii/match_sample.ts';
import type { LoggedEvent, MeteredEvent } from '../stage.ts';
import type { LandingEvent } from '../traces/tail_buffer.ts';
import type { Topology } from '../topology.ts';
import { LIMITS } from '../limits.ts';
import { type Correction, freshCorrections } from '../landing/corrections.ts';
import { SpanRows } from '../landing/span_rows.ts';
import { type Changes, type CountedUsage, UsageCounter } from '../landing/usage_rows.ts';
import { keepForced } from '../traces/forced_traces.ts';
import { emptyUnit, type LandingUnit } from '../landing/lander.ts';
import type { LandingLanes } from '../landing/landing_lanes.ts';
import type { EventOf } from '../landing/landing_block.ts';
import { eventKey, traceRowKey } from '../landing/landing_row.ts';
import type { LogMessage } from './log_reader.ts';
import type { ReadStream } from './log_readers.ts';
import { bytesOf, eventsOf, readMessage, slices, type Sources, sourcesOf } from './read_messages.ts';
import { judgeCompleted, type Judging, type JudgingOf } from '../judging/rule_scores_of_batch.ts';
import type { PartitionState } from './partition_state.ts';
import type { DeadEvent, StageRunner } from '../flow.ts';
import type { StageObserver } from './stage_runner.ts';
import { type TailSampler, withReleased } from '../traces/tail_sampling.ts';
import type { StoredTrace } from '../traces/stored_trace.ts';
import type { TraceEvent } from '../traces/trace_events.ts';

/**
 * A message with the partitions for which it is new: their state was not past the message when it
 * was taken.
 */
export interface TakenMessage extends LogMessage {
  partitions: ReadonlySet<number>;
}

/** An event, or a whole message that could not be read, on its way to DEAD_LETTERS. */
export interface DeadLetterEntry {
  dead: DeadEvent;
  event: LoggedEvent | null;
  raw: Uint8Array | null;
}

/** How far a partition is once the batch has landed. Positions in the log, as in PartitionState. */
export interface Progress {
  state: PartitionState;
  landed_through: number;
  settled_through: number;
  completed_through: number;
  /** received_at of the newest event, in milliseconds; 0 if there is none. */
  heard_at: number;
}

export interface Prepared {
  /** Rows of the express lane, among them all usage. */
  rows: LandingUnit;
  /** Rows of the bulk lane, with their organizations; null if there is none. */
  bulk: { rows: LandingUnit; orgs: ReadonlySet<string> } | null;
  usage: CountedUsage[];
  deadLetters: DeadLetterEntry[];
  events: (TraceEvent & { partition: number })[];
  /** Tasks for LLM judges. */
  tasks: Judging['tasks'];
  progress: Progress[];
  /** True if rows count model calls in place of rows that landed before. */
  replaces: boolean;
  count: number;
}

export interface PrepareDeps {
  topology: Topology;
  runner: StageRunner;
  /** null if every event is decided by itself, by the stage sample. */
  tail: TailSampler | null;
  /** null if all rows land in the express lane, as with tail sampling, whose rows may land long after their events were read. */
  lanes: LandingLanes | null;
  observer: StageObserver;
  /** Offset that turns positions in the log into log positions of the store. */
  logBase: number;
  /** Number of partitions of the log. */
  partitions: number;
  /** Returns the streams that are read, with their partitions. */
  streams(): readonly ReadStream[];
  textDays(orgId: string): number;
  /** Returns whether an organization is being deleted. Its events are dropped as they are read. */
  isDeleted(orgId: string): boolean;
  /** Returns the rows of those of the traces that have one. Rejects if the store is unavailable. */
  findTraces(partition: number, traces: readonly { org_id: string; trace_id: string }[]): Promise<StoredTrace[]>;
  /**
   * Returns the log_seq at which each correction landed first in a partition, by correction_hex.
   * Corrections that have not landed are left out. Rejects if the store is unavailable.
   */
  findCorrections(partition: number, corrections: readonly string[]): Promise<ReadonlyMap<string, number>>;
  now(): number;
  /** Judges the complete traces of a partition. It waits while the store is unavailable. */
  judge: JudgingOf;
  /** Yields to timers. */
  yield(): Promise<void>;
}

/** The results of a batch's slices so far. */
interface Batch {
  usage: UsageCounter;
  spans: SpanRows;
  eventOf: EventOf;
  deadLetters: DeadLetterEntry[];
  /** Events about personal data that redaction found. */
  matches: Prepared['events'];
  /** Decided events that were buffered, see withReleased. */
  released: LandingEvent[];
  replaces: boolean;
  count: number;
}

/**
 * Prepares a batch. It changes the state of the partitions, so each batch must be prepared once.
 *
 * A slice of messages becomes rows before the next one is read, so that events are short-lived.
 *
 * @param landed resolves when the batches before this one have landed
 */
export async function prepare(
  deps: PrepareDeps,
  states: ReadonlyMap<number, PartitionState>,
  messages: readonly TakenMessage[],
  landed: () => Promise<void>,
): Promise<Prepared> {
  const { lanes } = deps;
  const [rows, bulk] = [emptyUnit(), emptyUnit()];
  lanes?.begin();
  const unitOf = (org_id: string): LandingUnit => (lanes?.isBulk(org_id) === true ? bulk : rows);
  const held = new Map<string, LoggedEvent>();
  const eventOf = eventsOf(deps, messages, held);
  const spans = new SpanRows({
    states,
    textDays: (orgId) => deps.textDays(orgId),
    observer: deps.observer,
    held,
    eventOf,
    unitOf,
  });
  const batch: Batch = {
    usage: new UsageCounter(states),
    spans,
    eventOf,
    deadLetters: [],
    matches: [],
    released: [],
    replaces: false,
    count: 0,
  };
  for (const slice of slices(messages)) {
    await prepareSlice(deps, states, slice, batch);
    await deps.yield();
  }
  const usage = batch.usage.take(rows);
  const { progress, decided } = settleBooks(deps, states, messages);
  await fillRows(deps, decided, batch);
  endReplays(deps, progress);
  const traceEvents = progress.flatMap(({ state }) => takeBook(state, unitOf, deps.logBase));
  const completed = withReleased(traceEvents, batch.released);
  const { events, tasks } = await judgeCompleted(deps, states, completed, unitOf, landed);
  for (const { state } of progress) {
    state.book.trimInputs(deps.logBase + state.landed_through);
    state.calls.trim(deps.logBase + state.settled_through, state.book);
  }
  events.push(...batch.matches);
  const { deadLetters, replaces, count } = batch;
  const orgs = lanes?.takeBulk() ?? new Set<string>();
  const split = { rows, bulk: orgs.size === 0 ? null : { rows: bulk, orgs } };
  return { ...split, usage, deadLetters, events, tasks, progress, replaces, count };
}

/** Runs the stages over a slice of a batch, and adds what follows from it to the batch. */
async function prepareSlice(
  deps: PrepareDeps,
  states: ReadonlyMap<number, PartitionState>,
  slice: readonly TakenMessage[],
  batch: Batch,
): Promise<void> {
  const sent: Correction[] = [];
  const events = slice.flatMap((message) => readMessage(deps, message, batch.deadLetters, sent));
  const dead: DeadEvent[] = [];
  const metered = await deps.topology.run(deps.runner, events, dead);
  for (const one of dead) batch.deadLetters.push({ dead: one, event: batch.eventOf(one.position), raw: null });
  const corrections = await freshCorrections(deps, states, sent);
  await restoreForgotten(deps, states, [...metered, ...corrections]);
  if (deps.lanes !== null) countCosts(deps.lanes, events, metered);
  batch.usage.add({ metered, corrections });
  deps.tail?.countRead(metered.length, bytesOf(slice));
  const kept = deps.tail === null ? keepForced(states, metered) : metered;
  // The tail buffer holds events for longer than their messages are in memory.
  const sources = deps.tail === null ? null : sourcesOf(events);
  await fillRows(deps, applyChanges(deps, states, { metered: kept, corrections }, sources), batch);
  for (const { partition, spans, backfill } of metered)
    if (backfill !== true) batch.matches.push(...piiMatches(spans).map((match) => ({ ...match, partition })));
  batch.count += metered.length;
}

/** Counts what the events of a slice cost a landing, before rows are made of them. */
function countCosts(lanes: LandingLanes, events: readonly LoggedEvent[], metered: readonly MeteredEvent[]): void {
  for (const { org_id, body } of events) lanes.addEvent(org_id, body.length);
  for (const { org_id, spans } of metered) for (const { started_at } of spans) lanes.addSpan(org_id, started_at);
}

async function restoreForgotten(
  deps: PrepareDeps,
  states: ReadonlyMap<number, PartitionState>,
  changes: readonly { partition: number; org_id: string; trace_id: string }[],
): Promise<void> {
  const byPartition = Map.groupBy(changes, (change) => change.partition);
  await Promise.all(
    [...byPartition].map(async ([partition, changed]) => {
      const state = states.get(partition);
      const missing = state?.book.missing(changed) ?? [];
      if (state === undefined || missing.length === 0) return;
      const found = await deps.findTraces(partition, missing);
      for (const trace of found) state.book.restore(trace, { open: false, announce: false, now: deps.now() });
    }),
  );
}

/** Adds the rows of decided events, in blocks of bounded size. */
async function fillRows(deps: PrepareDeps, decided: readonly LandingEvent[], batch: Batch): Promise<void> {
  let bytes = 0;
  for (const one of decided) {
    if (one.wasBuffered === true) batch.released.push(one);
    if (one.event.replaced !== undefined) batch.replaces = true;
    batch.spans.add(one);
    bytes += one.source?.body.length ?? 0;
    if (bytes < LIMITS.slice_bytes) continue;
    bytes = 0;
    batch.spans.close();
    await deps.yield();
  }
  batch.spans.close();
}

/** Applies the changes of a slice to the open traces, and returns the events that are decided by that. */
function applyChanges(
  deps: PrepareDeps,
  states: ReadonlyMap<number, PartitionState>,
  { metered, corrections }: Changes,
  sources: Sources | null,
): LandingEvent[] {
  const now = deps.now();
  const owned = [...states.values()];
  const decided: LandingEvent[] = [];
  // Corrections are applied in log order among the events, so that the versions of traces only
  // rise.
  const next = corrections.values();
  let correction = next.next();
  const correctBefore = (log_seq: number): void => {
    for (; correction.done !== true && correction.value.log_seq < log_seq; correction = next.next()) {
      const { org_id, trace_id, partition, usage, log_seq: seq } = correction.value;
      states
        .get(partition)
        ?.book.correct(org_id, trace_id, { log_seq: seq, cost_pico_usd: usage.cost_pico_usd, heardAt: now });
    }
  };
  for (const event of metered) {
    correctBefore(event.log_seq);
    const state = states.get(event.partition);
    if (state === undefined) continue;
    const one = { event, source: sources?.get(eventKey(event)) ?? null };
    // A backfilled trace never completes, so it is decided by its events alone.
    if (deps.tail !== null && event.backfill !== true) deps.tail.take(owned, state, one, decided);
    else {
      state.book.apply(event);
      decided.push(one);
    }
    state.heard_at = Math.max(state.heard_at, event.received_at);
  }
  correctBefore(Infinity);
  return decided;
}

/** Lets time pass for the open traces after a batch, and returns the events that are decided by that. */
function settleBooks(
  deps: PrepareDeps,
  states: ReadonlyMap<number, PartitionState>,
  messages: readonly TakenMessage[],
): { progress: Progress[]; decided: LandingEvent[] } {
  const owned = [...states.values()];
  const decided: LandingEvent[] = [];
  for (const { position, partitions } of messages) {
    for (const partition of partitions) {
      const state = states.get(partition);
      if (state === undefined) continue;
      state.prepared_through = position;
    }
  }
  const replaying = messages.length > 0 && owned.some(({ replay }) => replay !== null);
  const time = tickBooks(states, deps.streams(), { now: deps.now(), replaying });
  deps.tail?.settle(owned, time, decided);
  const progress = owned.map((state) => {
    const oldest = state.tail.oldest;
    return {
      state,
      landed_through: state.prepared_through,
      settled_through: Math.min(
        state.prepared_through,
        oldest === undefined ? Infinity : oldest.log_seq - deps.logBase - 1,
      ),
      completed_through: Math.max(0, state.book.completedThrough(deps.logBase + state.prepared_through) - deps.logBase),
      heard_at: state.heard_at,
    };
  });
  return { progress, decided };
}

/**
 * Completes the traces that are quiet. While the worker is behind a stream, further events of a trace
 * may be unread, so time is that of the stream's newest event instead of the clock.
 *
 * @param replaying true if a former owner may have landed events of the batch
 * @returns the time of the stream that is furthest behind, in milliseconds
 */
function tickBooks(
  states: ReadonlyMap<number, PartitionState>,
  streams: readonly ReadStream[],
  { now, replaying }: { now: number; replaying: boolean },
): number {
  let earliest = now;
  for (const { partitions, isBehind } of streams) {
    const read = partitions.flatMap((partition) => states.get(partition) ?? []);
    const heardAt = Math.max(0, ...read.map(({ heard_at }) => heard_at));
    const time = isBehind ? heardAt : now;
    earliest = Math.min(earliest, time);
    for (const state of read) {
      state.heard_at = heardAt;
      state.book.tick(time, replaying);
    }
  }
  return earliest;
}

function endReplays({ logBase }: PrepareDeps, progress: readonly Progress[]): void {
  for (const { state } of progress)
    if (state.replay !== null && logBase + state.prepared_through >= state.replay.until) state.replay = null;
}

function takeBook(
  state: PartitionState,
  unitOf: (org_id: string) => LandingUnit,
  logBase: number,
): (TraceEvent & { partition: number })[] {
  for (const { wire, org_id, trace_id, version } of state.book.takeRows(logBase + state.landed_through)) {
    unitOf(org_id).traces.push({
      wire,
      partition: state.partition,
      epoch: state.epoch,
      log_seq: version,
      key: traceRowKey(org_id, trace_id, version),
      event: null,
    });
  }
  return state.book.takeEvents().map((event) => ({ ...event, partition: state.partition }));
}
