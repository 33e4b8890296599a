// From log messages to rows: runs the stages over a batch and keeps the books of its partitions.
// In: whole messages of owned partitions, in log order. Out: the rows of one landing, what died, and the platform events
// to tell once the rows are in. It writes nothing.
import { costCorrectionsCodec, ingestBatchCodec, UnknownSchemaError } from '../../schemas/codec.ts';
import { partitionOf } from '../domain/ids.ts';
import { addOutcomes } from '../domain/outcomes.ts';
import { piiMatches } from '../domain/pii_match.ts';
import type { DeadReason, LogPosition, LoggedEvent, MeteredEvent, Usage } from '../stage.ts';
import { spanLine, textLine, usageLine } from '../stages/land/rows.ts';
import { LIMITS, loggedEvent, type Topology } from '../topology.ts';
import { correctionsOf, freshCorrections, type Correction } from './corrections.ts';
import { emptyUnit, rowKey, traceRowKey, type LandingUnit } from './landing.ts';
import type { LogMessage } from './log_reader.ts';
import { judgeCompleted, type Judging, type JudgingOf } from './judge_completed.ts';
import type { PartitionState } from './partition_state.ts';
import type { DeadEvent, StageObserver, StageRunner } from './stage_runner.ts';
import type { BookEvent, StoredTrace } from './trace_book.ts';

/** A message and the partitions for which it is new: those that were not past it when it was taken. */
export interface TakenMessage extends LogMessage {
  partitions: ReadonlySet<number>;
}

/** An event (or a whole message that could not be read) that can never land. */
export interface Casualty {
  dead: DeadEvent;
  event: LoggedEvent | null;
  raw: Uint8Array | null;
}

/** How far a partition is once its unit has landed. JetStream sequences. */
export interface Progress {
  state: PartitionState;
  landed_through: number;
  completed_through: number;
  /** received_at of the newest event in it, milliseconds; 0 for none. */
  heard_at: number;
}

/** What a landing counts, with the place of its row in the store. */
export interface CountedUsage {
  usage: Usage;
  partition: number;
  log_seq: number;
}

export interface Prepared {
  rows: LandingUnit;
  usage: CountedUsage[];
  casualties: Casualty[];
  events: (BookEvent & { partition: number })[];
  /** What LLM judges are asked. */
  tasks: Judging['tasks'];
  progress: Progress[];
  count: number;
}

/** What a batch changes, each in the order of the log. */
interface Changes {
  metered: readonly MeteredEvent[];
  corrections: readonly Correction[];
}

export interface PrepareDeps {
  topology: Topology;
  stages: StageRunner;
  observer: StageObserver;
  /** What the store adds to JetStream sequences. */
  logBase: number;
  /** Partitions of the log. */
  partitions: number;
  /** Whether messages of the log were not read yet. */
  isBehind(): boolean;
  textDays(orgId: string): number;
  /** Rows of traces that may exist; rejects when the store is away. */
  findTraces(partition: number, traces: readonly { org_id: string; trace_id: string }[]): Promise<StoredTrace[]>;
  /**
   * Where corrections of costs have landed first in a partition: log_seq of the landing by correction_hex; those that have
   * not are left out. Rejects when the store is away.
   */
  findCorrections(partition: number, corrections: readonly string[]): Promise<ReadonlyMap<string, number>>;
  now(): number;
  /** Judges complete traces of a partition; what it needs of the store is there, or comes back some time. */
  judge: JudgingOf;
  /** Gives timers their turn. */
  yield(): Promise<void>;
}

/** @param landed resolves when the batches before this one have landed */
export async function prepare(
  deps: PrepareDeps,
  states: ReadonlyMap<number, PartitionState>,
  messages: readonly TakenMessage[],
  landed: () => Promise<void>,
): Promise<Prepared> {
  const casualties: Casualty[] = [];
  const metered: MeteredEvent[] = [];
  const sent: Correction[] = [];
  const byPosition = new Map<string, LoggedEvent>();
  for (const slice of slices(messages)) {
    const events = slice.flatMap((message) => readMessage(deps, message, casualties, sent));
    for (const event of events) byPosition.set(positionKey(event), event);
    const dead: DeadEvent[] = [];
    metered.push(...(await runStages(deps, events, dead)));
    for (const one of dead) casualties.push({ dead: one, event: byPosition.get(positionKey(one.position)) ?? null, raw: null });
    await deps.yield();
  }
  const corrections = await freshCorrections(deps, states, sent);
  await restoreForgotten(deps, states, [...metered, ...corrections]);
  const rows = emptyUnit();
  const usage = fillRows(deps, states, { metered, corrections }, byPosition, rows);
  const progress = keepBooks(deps, states, messages, { metered, corrections });
  const told = progress.flatMap(({ state }) => takeBook(state, rows));
  const { events, tasks } = await judgeCompleted(deps, states, told, rows, landed);
  for (const { state } of progress) state.book.trimInputs(deps.logBase + state.landed_through);
  for (const { partition, spans } of metered) events.push(...piiMatches(spans).map((match) => ({ ...match, partition })));
  return { rows, usage, casualties, events, tasks, progress, count: metered.length };
}

const positionKey = (position: LogPosition): string =>
  `${String(position.partition)}:${String(position.log_seq)}:${String(position.log_index)}`;

function* slices(messages: readonly TakenMessage[]): Generator<TakenMessage[]> {
  let slice: TakenMessage[] = [];
  let bytes = 0;
  for (const message of messages) {
    slice.push(message);
    bytes += message.data.length;
    if (bytes < LIMITS.slice_bytes) continue;
    yield slice;
    slice = [];
    bytes = 0;
  }
  if (slice.length > 0) yield slice;
}

/** The events of a message; a message of corrections has none, and adds to `corrections`. */
function readMessage(deps: PrepareDeps, message: TakenMessage, casualties: Casualty[], corrections: Correction[]): LoggedEvent[] {
  const logSeq = deps.logBase + message.seq;
  try {
    if (message.fingerprint === costCorrectionsCodec.fingerprint) {
      corrections.push(...correctionsOf(costCorrectionsCodec.decode(message.data, message.fingerprint), message.partition, logSeq));
      return [];
    }
    const { events } = ingestBatchCodec.decode(message.data, message.fingerprint);
    return events.flatMap((event, index) => {
      const partition = message.partition ?? partitionOf(event.org_id, event.trace_id, deps.partitions);
      return message.partitions.has(partition) ? [loggedEvent(event, partition, logSeq, index)] : [];
    });
  } catch (error) {
    const reason: DeadReason = error instanceof UnknownSchemaError ? 'unknown_schema' : 'unreadable_message';
    const detail = error instanceof Error ? error.message : String(error);
    casualties.push({
      dead: {
        stage: 'decode',
        reason,
        detail,
        position: { partition: message.partition ?? Math.min(...message.partitions), log_seq: logSeq, log_index: -1 },
      },
      event: null,
      raw: message.data,
    });
    deps.observer.dead('decode', reason, 1);
    return [];
  }
}

async function runStages({ topology, stages }: PrepareDeps, events: LoggedEvent[], dead: DeadEvent[]): Promise<MeteredEvent[]> {
  const decoded = await stages.run(topology.decode, events, dead);
  const fresh = await stages.run(topology.dedupe, decoded, dead);
  const sampled = await stages.run(topology.sample, fresh, dead);
  return stages.run(topology.meter, sampled, dead);
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

function fillRows(
  deps: PrepareDeps,
  states: ReadonlyMap<number, PartitionState>,
  { metered, corrections }: Changes,
  logged: ReadonlyMap<string, LoggedEvent>,
  rows: LandingUnit,
): CountedUsage[] {
  const usage = new Map<string, { usage: Usage; partition: number }>();
  const lastSeq = new Map<number, number>();
  for (const event of metered) {
    const state = states.get(event.partition);
    if (state === undefined) continue;
    const { replay, epoch } = state;
    const source = logged.get(positionKey(event)) ?? null;
    const full = event.retain === 'full';
    const days = deps.textDays(event.org_id);
    for (const [sub, span] of event.spans.entries()) {
      const key = rowKey(event.log_seq, event.log_index, sub);
      const place = { partition: event.partition, epoch, log_seq: event.log_seq, key, event: source };
      if (replay?.spans.has(key) !== true) rows.spans.push({ line: spanLine(span, event, sub, full), ...place });
      if (!full || replay?.texts.has(key) === true) continue;
      const line = textLine(span, event, sub, days);
      if (line !== null) rows.span_texts_recent.push({ line, ...place });
    }
    lastSeq.set(event.partition, event.log_seq);
    if (replay === null || event.log_seq > replay.usage_through) addUsage(usage, event);
  }
  for (const correction of corrections) {
    const { partition, log_seq } = correction;
    const { replay } = states.get(partition) ?? { replay: null };
    lastSeq.set(partition, Math.max(log_seq, lastSeq.get(partition) ?? 0));
    if (replay === null || log_seq > replay.usage_through) addUsage(usage, correction);
  }
  const counted = [...usage.values()].map(({ usage: total, partition }) => ({
    usage: total,
    partition,
    log_seq: lastSeq.get(partition) ?? 0,
  }));
  for (const { usage: total, partition, log_seq: seq } of counted) {
    rows.usage_events.push({
      line: usageLine(total, partition, seq),
      partition,
      epoch: states.get(partition)?.epoch ?? 0,
      log_seq: seq,
      key: String(seq),
      event: null,
    });
  }
  return counted;
}

function addUsage(
  totals: Map<string, { usage: Usage; partition: number }>,
  { usage, partition }: Pick<MeteredEvent, 'usage' | 'partition'>,
): void {
  const { org_id, agent_id, model, department, realm } = usage;
  const key = JSON.stringify([partition, usage.hour, usage.day, org_id, agent_id, model, department, realm, String(usage.correction)]);
  const total = totals.get(key)?.usage;
  if (total === undefined) {
    totals.set(key, { usage: { ...usage }, partition });
    return;
  }
  total.last_received_at = Math.max(total.last_received_at, usage.last_received_at);
  total.events += usage.events;
  total.input_tokens += usage.input_tokens;
  total.output_tokens += usage.output_tokens;
  total.storage_bytes += usage.storage_bytes;
  total.sandbox_micros += usage.sandbox_micros;
  total.cost_pico_usd += usage.cost_pico_usd;
  total.outcomes = addOutcomes(total.outcomes, usage.outcomes);
}

function keepBooks(
  deps: PrepareDeps,
  states: ReadonlyMap<number, PartitionState>,
  messages: readonly TakenMessage[],
  { metered, corrections }: Changes,
): Progress[] {
  let heardAt = 0;
  const now = deps.now();
  // In the order of the log, so that the versions of traces only rise.
  const next = corrections.values();
  let correction = next.next();
  const correctBefore = (log_seq: number): void => {
    for (; correction.done !== true && correction.value.log_seq < log_seq; correction = next.next()) {
      const { org_id, trace_id, partition, usage, log_seq: seq } = correction.value;
      states.get(partition)?.book.correct(org_id, trace_id, { log_seq: seq, cost_pico_usd: usage.cost_pico_usd, heardAt: now });
    }
  };
  for (const event of metered) {
    correctBefore(event.log_seq);
    states.get(event.partition)?.book.apply(event);
    heardAt = Math.max(heardAt, event.received_at);
  }
  correctBefore(Infinity);
  for (const { seq, partitions } of messages) {
    for (const partition of partitions) {
      const state = states.get(partition);
      if (state === undefined) continue;
      state.prepared_through = seq;
      if (state.replay !== null && deps.logBase + seq >= state.replay.until) state.replay = null;
    }
  }
  const behind = deps.isBehind();
  return [...states.values()].map((state) => {
    state.heard_at = Math.max(state.heard_at, heardAt);
    // Behind in the log, what a trace still gets may lie unread: time is then the log's, not the wall's.
    state.book.tick(behind ? state.heard_at : now);
    return {
      state,
      landed_through: state.prepared_through,
      completed_through: Math.max(0, state.book.completedThrough(deps.logBase + state.prepared_through) - deps.logBase),
      heard_at: state.heard_at,
    };
  });
}

function takeBook(state: PartitionState, rows: LandingUnit): (BookEvent & { partition: number })[] {
  for (const { line, org_id, trace_id, version } of state.book.takeRows()) {
    rows.traces.push({
      line,
      partition: state.partition,
      epoch: state.epoch,
      log_seq: version,
      key: traceRowKey(org_id, trace_id, version),
      event: null,
    });
  }
  return state.book.takeEvents().map((event) => ({ ...event, partition: state.partition }));
}
